"""What the kernel refuses in silence is told at the end, and the same command succeeds as advised."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room")]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no compiler here")


@needs_gcc
def test_a_compiler_alone_finds_no_pass_and_the_end_says_why(
    stockade: Any, world: World, workspace: Path
) -> None:
    (workspace / "a.c").write_text("int main(void) { return 0; }\n")
    command = ["gcc", "-o", "/tmp/a", "a.c"]
    alone = stockade(command, "exec: {allow: [gcc]}")
    assert alone.code == 1
    assert "No such file or directory" in alone.err  # gcc's own words: it did not try
    assert not [record for record in alone.records if record.get("verdict") == "deny"]
    assert "does not try to start its passes" in alone.err
    followed = stockade(command, "include: [exec/coding]")
    assert (followed.code, followed.err) == (0, "")


def test_make_that_finds_no_program_is_explained_and_the_line_helps(
    stockade: Any, world: World, workspace: Path
) -> None:
    (workspace / "Makefile").write_text("all:\n\tls\n")
    alone = stockade(["make"], "exec: {allow: [make]}")
    assert alone.code == 2
    assert "make does not try to start a program" in alone.err
    followed = stockade(["make"], "exec: {allow: [make, ls]}")
    assert (followed.code, followed.err) == (0, "")


@needs_gcc
def test_a_compiled_module_of_the_workspace_is_explained_and_loads_as_advised(
    stockade: Any, world: World, workspace: Path
) -> None:
    (workspace / ".venv").mkdir()
    source = workspace / "answer.c"
    source.write_text("int answer(void) { return 42; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", workspace / ".venv" / "answer.so", source], check=True)
    command = ["/usr/bin/python3", "-c", "import ctypes; print(ctypes.CDLL('./.venv/answer.so').answer())"]
    refused = stockade(command, "exec: {allow: []}")
    assert refused.code == 1
    assert "failed to map segment from shared object" in refused.err
    assert "add `exec: {libraries: [.venv]}`" in refused.err
    loaded = stockade(command, "exec: {libraries: [.venv]}")
    assert (loaded.code, loaded.out, loaded.err) == (0, "42\n", "")


@needs_gcc
def test_a_linker_that_is_not_listed_is_explained_and_the_line_helps(
    stockade: Any, world: World, workspace: Path
) -> None:
    (workspace / "a.c").write_text("int main(void) { return 0; }\n")
    passes = [
        subprocess.run(["gcc", f"-print-prog-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in ("cc1", "collect2")
    ]
    command = ["gcc", "-o", "/tmp/a", "a.c"]
    alone = stockade(command, f"exec: {{allow: [as, {', '.join(passes)}]}}")
    assert alone.code == 1
    assert "collect2 does not try to start a program" in alone.err
    followed = stockade(command, f"exec: {{allow: [as, ld, {', '.join(passes)}]}}")
    assert (followed.code, followed.err) == (0, "")
