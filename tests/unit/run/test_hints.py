"""What is said of a failure that no record explains, and what is not said where it would mislead."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stockade.policy.load import load_policy_text
from stockade.run import hints
from stockade.run.hints import find_hints, find_unlisted_libraries
from stockade.sandbox.filter import FilterWish
from stockade.sandbox.noexec import MountSeal
from stockade.sandbox.programs import Program
from stockade.sandbox.seal import SealPlan


def program(path: str, why: str = "exec: x", *, is_script: bool = False) -> Program:
    return Program(path=path, identity=(1, hash(path)), why=why, is_script=is_script)


def plan(workspace: Path, *programs: Program, libraries: tuple[str, ...] = (), **changes: Any) -> Any:
    mounts = MountSeal(libraries=tuple((path, True) for path in libraries))
    seal = SealPlan(code="closed", programs=programs, mounts=mounts, filter=FilterWish())
    facts = {"argv": ("sh",), "writable": (workspace,), "environment": {}, **changes}
    return SimpleNamespace(seal=seal, workspace=workspace, **facts)


def said(
    what: Any,
    *,
    refused: tuple[str, ...] = (),
    not_found: tuple[str, ...] = (),
    libraries: tuple[str, ...] = (),
    has_failed: bool = True,
) -> list[str]:
    return find_hints(what, libraries, refused=refused, not_found=not_found, has_failed=has_failed)


# --- launchers, programs of the run's own ---------------------------------------------------------


def test_a_launcher_is_told_from_the_program_of_its_name(tmp_path: Path) -> None:
    script = program("/usr/bin/chromium", "launched", is_script=True)
    listed = plan(tmp_path, script, program("/usr/lib/chromium/chromium"))
    (hint,) = said(listed, refused=("/usr/bin/expr",))
    assert hint.endswith("launch /usr/lib/chromium/chromium itself")
    assert said(plan(tmp_path, script), refused=("/opt/google/chromium", "/usr/bin/expr"))[0].endswith(
        "launch /opt/google/chromium itself"
    )
    assert said(listed) == []  # nothing was refused
    assert said(plan(tmp_path, script), refused=("/usr/bin/expr",)) == []
    assert said(plan(tmp_path, program("/usr/bin/chromium", "launched")), refused=("/x/chromium",)) == []


def test_programs_where_the_command_may_write(tmp_path: Path) -> None:
    what = plan(tmp_path)
    (hint,) = said(what, refused=(f"{tmp_path}/b/test", "/usr/bin/id"))
    assert "(test)" in hint
    assert "`exec: {mode: any}`" in hint
    assert said(what, refused=("/usr/bin/id",)) == []


# --- programs that look absent --------------------------------------------------------------------


def test_a_helper_that_only_a_preset_names_is_named_when_it_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {"/usr/lib/gcc/*/*/cc1": ["/usr/lib/gcc/x/12/cc1"]}
    monkeypatch.setattr(hints, "glob", lambda pattern: here.get(pattern, []))
    what = plan(tmp_path, program("/usr/bin/gcc", "launched"))
    (hint,) = said(what, not_found=("cc1", "no-such-program", "ls"))
    assert "cc1 was looked for in vain" in hint
    preset, narrow = [
        load_policy_text(f"version: 1\n{text}\n")
        for text in hint.split("`")
        if text.startswith(("inc", "exec"))
    ]
    assert narrow.exec is not None
    assert narrow.exec.allow == ("/usr/lib/gcc/x/12/cc1",)
    assert preset.exec is not None
    assert "/usr/lib/gcc/*/*/cc1" in preset.exec.allow
    assert said(what, not_found=("cc1",), has_failed=False) == []
    assert said(plan(tmp_path, program("/usr/lib/gcc/x/12/cc1")), not_found=("cc1",)) == []


# --- native code ----------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """``env`` in the workspace: a virtual environment with one shared object."""
    folder = tmp_path / "env"
    (folder / "lib" / "site").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text("")
    (folder / "lib" / "site" / "fast.abi3.so").write_text("")
    return folder


def test_native_code_of_the_environment_that_was_launched(tmp_path: Path, environment: Path) -> None:
    launched = {"argv": ("env/bin/python",)}
    (hint,) = said(plan(tmp_path, **launched))
    assert hint == (
        f"native code of {environment}, such as lib/site/fast.abi3.so, cannot be loaded;"
        " to permit it, add `exec: {libraries: [env]}`"
    )
    assert said(plan(tmp_path, **launched), has_failed=False) == []
    assert list(find_unlisted_libraries(plan(tmp_path, **launched), ())) == [hint]


@pytest.mark.parametrize("listed", ["env", "env/lib", "."])
def test_native_code_that_may_be_loaded_is_none_of_it(tmp_path: Path, environment: Path, listed: str) -> None:
    opened = str((tmp_path / listed).resolve())
    assert said(plan(tmp_path, argv=("env/bin/python",), libraries=(opened,))) == []


@pytest.mark.parametrize(
    ("name", "is_native"),
    [
        ("x.so", True),
        ("libx.so.1.2", True),
        ("x.node", True),
        ("x.so.txt", False),
        ("sox", False),
        (".so", False),
    ],
)
def test_what_counts_as_native_code(tmp_path: Path, name: str, is_native: bool) -> None:
    (tmp_path / "node_modules" / "a").mkdir(parents=True)
    (tmp_path / "node_modules" / "a" / name).write_text("")
    assert bool(said(plan(tmp_path))) == is_native


def test_native_code_that_was_made_in_this_run_can_be_loaded_from_the_next_on(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "x.so").write_text("")
    (hint,) = said(plan(tmp_path), libraries=(".venv",))  # listed, and not there when the run started
    assert "made in this run" in hint
    assert "add" not in hint


def test_the_environment_of_the_caller_and_none_that_is_not_there(tmp_path: Path, environment: Path) -> None:
    assert said(plan(tmp_path)) == []
    (hint,) = said(plan(tmp_path, environment={"VIRTUAL_ENV": str(environment)}))
    assert str(environment) in hint


def test_where_any_program_may_run_nothing_is_explained(tmp_path: Path) -> None:
    what = plan(tmp_path)
    what.seal = SealPlan(code="any", filter=FilterWish())
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "x.so").write_text("")
    assert said(what, refused=(f"{tmp_path}/a",), not_found=("cc1",)) == []
