"""Package registries of this machine, read from its own pip, npm and apt configuration.

A denial of the public registry should be named as one. No list of ours says which hosts
those are: the machine's settings do, and the defaults that its pip and npm ship with.
Only host names are taken from the files; what else stands in them is not looked at.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from stockade.net.endpoint import Url, parse_url
from stockade.net.host import Host
from stockade.policy.model import CatalogueEntry, HostPattern
from stockade.vocabulary import PlaceClass

_MAX_BYTES = 1 << 18  # npm's own table of defaults is the largest, with some 90 KB

_PIP_FILES = ("etc/pip.conf", "etc/xdg/pip/pip.conf")
_PIP_HOME_FILES = (".config/pip/pip.conf", ".pip/pip.conf")
_PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_PIP_DEFAULTS = "pip/_internal/models/index.py"
_NPM_FILES = ("etc/npmrc", "usr/etc/npmrc", "usr/local/etc/npmrc")
_NPM_HOME_FILES = (".npmrc",)
_NPM_DEFAULTS = (
    "usr/share/nodejs/@npmcli/config/lib/definitions/definitions.js",
    "usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
    "usr/local/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
)

_URL = r"(https?://[^\s'\"`]+)"
_PIP_SETTING = re.compile(
    rf"^[ \t]*(?:index-url|extra-index-url)[ \t]*=((?:[ \t]*\n?[ \t]+{_URL}|{_URL})+)", re.M
)
_PIP_DEFAULT = re.compile(rf"PackageIndex\(\s*\"{_URL}\",\s*file_storage_domain=\"([^\"]+)\"")
_NPM_SETTING = re.compile(rf"^[ \t]*(?:@[\w.-]+:)?registry[ \t]*=[ \t]*{_URL}", re.M)
_NPM_DEFAULT = re.compile(rf"registry: new Definition\('registry', \{{\s*default: [`'\"]{_URL}")
_APT_SETTING = re.compile(r"^[ \t]*(?:deb(?:-src)?[ \t]+(?:\[[^\]]*\][ \t]*)?|URIs:[ \t]*)(.*)$", re.M)
_ANY_URL = re.compile(_URL)


@cache
def own_registries() -> tuple[CatalogueEntry, ...]:
    """The registries of this machine, as its settings are when first asked for."""
    return probe_registries(os.environ)


def probe_registries(
    environment: Mapping[str, str], root: Path = Path("/"), prefixes: Iterable[str] = tuple(sys.path)
) -> tuple[CatalogueEntry, ...]:
    """Find the machine's registries.

    Args:
        environment: For ``HOME`` and pip's own variables.
        root: Where the file system begins.
        prefixes: Folders in which Python packages lie.
    """
    home = Path(environment.get("HOME") or "/nonexistent")
    hosts = {
        "pip": _find_pip(environment, root, home, prefixes),
        "npm": _find_npm(root, home),
        "apt": _find_apt(root),
    }
    return tuple(
        CatalogueEntry(
            place=PlaceClass.REGISTRY,
            hosts=tuple(HostPattern(name) for name in dict.fromkeys(names)),
            origin=f"machine:{tool}",
        )
        for tool, names in hosts.items()
    )


def _find_pip(
    environment: Mapping[str, str], root: Path, home: Path, prefixes: Iterable[str]
) -> Iterator[str]:
    named = environment.get("PIP_CONFIG_FILE")
    files = [root / name for name in _PIP_FILES] + [home / name for name in _PIP_HOME_FILES]
    for file in files + ([Path(named)] if named else []):
        for setting in _PIP_SETTING.finditer(_read(file)):
            yield from _hosts_of(_ANY_URL.findall(setting[1]))
    for variable in _PIP_VARIABLES:
        yield from _hosts_of(environment.get(variable, "").split())
    here = os.getcwd()  # the worker's folder, which stands first for `python -m stockade`
    for prefix in prefixes:
        if prefix in ("", here):
            continue
        for default in _PIP_DEFAULT.finditer(_read(Path(prefix) / _PIP_DEFAULTS)):
            yield from _hosts_of((default[1], f"https://{default[2]}/"))


def _find_npm(root: Path, home: Path) -> Iterator[str]:
    for file in [root / name for name in _NPM_FILES] + [home / name for name in _NPM_HOME_FILES]:
        yield from _hosts_of(_NPM_SETTING.findall(_read(file)))
    for name in _NPM_DEFAULTS:
        yield from _hosts_of(_NPM_DEFAULT.findall(_read(root / name)))


def _find_apt(root: Path) -> Iterator[str]:
    folder = root / "etc/apt/sources.list.d"
    try:
        files = sorted(folder.iterdir())
    except OSError:
        files = []
    for file in [root / "etc/apt/sources.list", *files]:
        if file.suffix in (".list", ".sources"):
            for setting in _APT_SETTING.findall(_read(file)):
                yield from _hosts_of(_ANY_URL.findall(setting))


def _hosts_of(urls: Iterable[str]) -> Iterator[str]:
    for text in urls:
        # pip and npm write accounts into URLs; the host is all that is wanted of it
        url = parse_url(re.sub(r"//[^/]*@", "//", text))
        if isinstance(url, Url) and isinstance(url.endpoint.host, Host) and url.endpoint.host.address is None:
            yield url.endpoint.host.name


def _read(path: Path) -> str:
    """The text of a file, or nothing if it is not there or not ours to read."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            return file.read(_MAX_BYTES).decode("utf-8", "replace") if is_file else ""
    except OSError:
        return ""


def _without_waiting(path: str, flags: int) -> int:
    """Where the workspace is a home, a FIFO may stand there, and nobody would ever write to it."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
