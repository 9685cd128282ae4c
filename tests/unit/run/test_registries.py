"""Registries are recognized from the machine's own settings, and nothing but host names is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.decision.engine import Engine
from stockade.decision.request import Attempt
from stockade.net.host import Host
from stockade.policy.model import DENY_ALL
from stockade.run.registries import probe_registries
from stockade.vocabulary import Control, Entry, PlaceClass, Protocol, Risk, Verdict


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def found(root: Path, prefixes: tuple[str, ...] = (), **environment: str) -> dict[str, list[str]]:
    environment.setdefault("HOME", str(root / "home"))
    entries = probe_registries(environment, root, prefixes)
    return {entry.origin: [pattern.name for pattern in entry.hosts] for entry in entries}


def test_pip_settings_of_machine_user_and_environment(tmp_path: Path) -> None:
    write(tmp_path, "etc/pip.conf", "[global]\nindex-url = https://index.corp.test/simple\n")
    write(
        tmp_path,
        "home/.config/pip/pip.conf",
        "[global]\nextra-index-url =\n    https://one.test/simple\n"
        "    https://user:secret@two.test/simple\ncert = /x\n",
    )
    hosts = found(tmp_path, PIP_EXTRA_INDEX_URL="https://three.test/ https://four.test/")
    assert hosts["machine:pip"] == ["index.corp.test", "one.test", "two.test", "three.test", "four.test"]


def test_pips_own_default_is_read_from_pip(tmp_path: Path) -> None:
    write(
        tmp_path,
        "site/pip/_internal/models/index.py",
        'X = PackageIndex("https://index.example/", file_storage_domain="files.example")\n',
    )
    assert found(tmp_path, (str(tmp_path / "site"),))["machine:pip"] == ["index.example", "files.example"]


def test_npm_settings_and_default(tmp_path: Path) -> None:
    write(
        tmp_path,
        "home/.npmrc",
        "//npm.corp.test/:_authToken=SECRET\n@org:registry=https://scoped.test/\nregistry=https://npm.corp.test/x/\n",
    )
    write(
        tmp_path,
        "usr/share/nodejs/@npmcli/config/lib/definitions/definitions.js",
        "define('x', {default: 'https://not.example/'})\n"
        "  registry: new Definition('registry', {\n    default: `https://npm.example/`,\n",
    )
    assert found(tmp_path)["machine:npm"] == ["scoped.test", "npm.corp.test", "npm.example"]


def test_apt_sources_of_both_forms(tmp_path: Path) -> None:
    write(
        tmp_path,
        "etc/apt/sources.list",
        "deb [arch=amd64] http://apt.test/debian stable main\n# deb http://off.test/ x\n",
    )
    write(
        tmp_path,
        "etc/apt/sources.list.d/a.sources",
        "Types: deb\nURIs: http://b.test/debian https://c.test/\n",
    )
    write(tmp_path, "etc/apt/sources.list.d/a.list.disabled", "deb http://off.test/ x\n")
    assert found(tmp_path)["machine:apt"] == ["apt.test", "b.test", "c.test"]


@pytest.mark.parametrize(
    "text", ["", "\0\xff", "[global]\nindex-url = nonsense\n", "index-url = https://10.0.0.1/x\n"]
)
def test_what_names_no_host_is_left_out(tmp_path: Path, text: str) -> None:
    write(tmp_path, "etc/pip.conf", text)
    assert found(tmp_path) == {"machine:pip": [], "machine:npm": [], "machine:apt": []}


def test_a_registry_of_the_machine_is_denied_by_its_name_and_is_not_opened_by_it(tmp_path: Path) -> None:
    write(tmp_path, "etc/pip.conf", "[global]\nindex-url = https://index.corp.test/simple\n")
    engine = Engine(DENY_ALL, places=probe_registries({}, tmp_path, ()))
    attempt = Attempt(entry=Entry.TRANSPARENT, protocol=Protocol.TLS, host=Host("index.corp.test"), port=443)
    decision = engine.decide(attempt)
    assert (decision.verdict, decision.risk) == (Verdict.DENY, Risk.SUPPLY_CHAIN)
    assert (decision.place, decision.control) == (PlaceClass.REGISTRY, Control.VETTED_MIRROR_PINNED)
    assert decision.rule == "machine:pip"
