"""Compiled modules that a run may not load: found for the program that loads them, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.policy.load import load_policy_text
from stockade.run import native_modules
from stockade.run.native_modules import Places, describe_modules, find_environments

PYTHON, NODE = ("python3.11",), ("node",)


def lines(
    workspace: Path,
    started: tuple[str, ...] = PYTHON,
    opened: tuple[str, ...] = ("/usr/lib",),
    **more: object,
) -> list[str]:
    return list(describe_modules(Places(workspace=str(workspace), opened=opened, **more), started))  # type: ignore[arg-type]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A compiled module in the environment of a workspace."""
    packages = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "plain.py").touch()
    (packages / "fast.cpython-311-x86_64-linux-gnu.so").touch()
    return packages / "fast.cpython-311-x86_64-linux-gnu.so"


def test_they_are_found_for_the_program_that_loads_them(tmp_path: Path, module: Path) -> None:
    (line,) = lines(tmp_path)
    assert line.startswith(".venv holds compiled modules (.so)")
    policy = load_policy_text(f"version: 1\n{line.split('`')[1]}\n")
    assert policy.exec is not None
    assert policy.exec.libraries == (".venv",)
    assert lines(tmp_path, started=("git", "node", "python3-config")) == []
    module.unlink()
    assert lines(tmp_path) == []


def test_a_folder_that_is_opened_whole_or_in_part_is_none(tmp_path: Path, module: Path) -> None:
    for opened in (tmp_path, tmp_path / ".venv", tmp_path / ".venv" / "lib"):
        assert lines(tmp_path, opened=(str(opened),)) == []
    assert lines(tmp_path, opened=(str(tmp_path / ".venv2"),)) != []


def test_what_was_listed_and_was_made_in_the_run_is_for_the_next_one(tmp_path: Path, module: Path) -> None:
    (line,) = lines(tmp_path, written=(str(tmp_path / ".venv"),))
    assert "made in this run" in line
    assert "add" not in line


def test_addons_of_node_lie_in_node_modules_only(tmp_path: Path, module: Path) -> None:
    (tmp_path / "node_modules" / "a").mkdir(parents=True)
    (tmp_path / "node_modules" / "a" / "addon.node").touch()
    (line,) = lines(tmp_path, started=NODE, environments=(str(tmp_path / ".venv"),))
    assert "`exec: {libraries: [node_modules]}`" in line
    assert len(lines(tmp_path, started=(*NODE, *PYTHON))) == 2


def test_environments_of_another_name_are_those_of_the_command_and_of_its_variables(tmp_path: Path) -> None:
    workspace, env = tmp_path / "w", tmp_path / "env"
    (env / "bin").mkdir(parents=True)
    workspace.mkdir()
    assert find_environments(str(workspace), "../env/bin/python", {}) == ()  # no pyvenv.cfg
    (env / "pyvenv.cfg").touch()
    assert find_environments(str(workspace), "../env/bin/python", {}) == (str(env),)
    assert find_environments(str(workspace), "python", {"VIRTUAL_ENV": str(env)}) == (str(env),)
    assert find_environments(str(workspace), "python", {}) == ()
    (env / "x.so").touch()
    (line,) = lines(workspace, environments=(str(env),))
    assert f"`exec: {{libraries: [{env}]}}`" in line


def test_a_folder_without_end_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker may have filled it: the end of a run does not wait for that."""
    modules = tmp_path / "node_modules" / "deep" / "deeper"
    modules.mkdir(parents=True)
    for number in range(5):
        (tmp_path / "node_modules" / f"{number}.js").touch()
    (modules / "addon.node").touch()
    assert lines(tmp_path, started=NODE)
    monkeypatch.setattr(native_modules, "FILES_LOOKED_AT", 4)
    assert lines(tmp_path, started=NODE) == []


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.so").touch()
    (tmp_path / ".venv").symlink_to(tmp_path / "elsewhere")
    assert lines(tmp_path) == []
