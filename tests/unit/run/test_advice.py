"""What is added at the end of a failed run, where the kernel refused something and no record says so."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from msgspec.structs import replace

from stockade.run.advice import Ending, advise, explain_start_failure
from stockade.run.native_modules import Places

GCC = Ending(code=1, mode="closed", started=frozenset({"x86_64-linux-gnu-gcc-12"}))
MAKE = Ending(code=2, mode="closed", started=frozenset({"make"}))


def test_a_compiler_whose_passes_may_not_run_is_explained() -> None:
    """Traced with gcc 12: it asks access(cc1, X_OK), is told no, and says "No such file or directory"."""
    (line,) = advise(GCC)
    assert line.startswith("x86_64-linux-gnu-gcc-12 does not try to start its passes")
    assert "include: [exec/coding]" in line


@pytest.mark.parametrize("name", ["gcc", "cc", "c++", "g++-12", "aarch64-linux-gnu-gcc", "gfortran"])
def test_compilers_by_all_their_names(name: str) -> None:
    assert advise(Ending(code=1, mode="jit", started=frozenset({name})))


@pytest.mark.parametrize("name", ["gcc-ar", "occ", "python3", "cc1", "gccgo2"])
def test_other_programs_are_no_compilers(name: str) -> None:
    assert advise(Ending(code=1, mode="closed", started=frozenset({name}))) == []


@pytest.mark.parametrize(
    "ending",
    [
        Ending(code=0, mode="closed", started=GCC.started),
        Ending(code=1, mode="any", started=GCC.started),
        Ending(code=1, mode="closed", started=GCC.started, permitted=("/usr/lib/gcc/x/12/cc1plus",)),
        Ending(code=0, mode="closed", started=MAKE.started),
        Ending(code=2, mode="closed", started=MAKE.started, has_preset=True),
        Ending(code=2, mode="closed", started=MAKE.started, denied_any=True, denied_programs=True),
    ],
)
def test_nothing_is_said_where_it_worked_or_another_line_says_it(ending: Ending) -> None:
    assert advise(ending) == []


@pytest.mark.parametrize("name", ["make", "gmake", "collect2"])
def test_a_program_that_looks_first_is_explained_where_the_list_is_by_hand(name: str) -> None:
    """Traced with make 4.3 and gcc 12: collect2 says "cannot find 'ld'" and never tries."""
    (line,) = advise(replace(MAKE, started=frozenset({name, "git"})))
    assert line.startswith(f"{name} does not try to start a program")
    assert "stockade decide exec NAME" in line
    assert advise(replace(MAKE, started=frozenset({"cmake", "makeinfo"}))) == []


def test_compiled_modules_are_named_unless_a_refused_program_is_the_likelier_reason(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "fast.so").touch()
    ending = Ending(
        code=1, mode="closed", started=frozenset({"python3"}), places=Places(workspace=str(tmp_path))
    )
    (line,) = advise(ending)
    assert line.startswith(".venv holds compiled modules (.so)")
    assert advise(replace(ending, code=0)) == []
    assert advise(replace(ending, places=None)) == []  # the layer was given up
    assert advise(replace(ending, denied_any=True, denied_programs=True)) == []


def test_a_launcher_is_told_from_the_program_of_its_name() -> None:
    script, chromium = "/usr/bin/chromium", "/usr/lib/chromium/chromium"
    listed = Ending(code=0, mode="jit", launched_script=script, permitted=(script, chromium))
    assert advise(listed) == []  # nothing was refused
    refused = replace(listed, refused=("/usr/bin/expr",))
    assert advise(refused) == [
        "/usr/bin/chromium is a script that starts other programs; launch /usr/lib/chromium/chromium itself"
    ]
    (unlisted,) = advise(replace(refused, permitted=(script,), refused=("/usr/bin/expr", chromium)))
    assert unlisted.endswith(f"launch {chromium} itself")
    assert advise(replace(refused, permitted=(script,))) == []
    assert advise(replace(refused, launched_script="")) == []


def test_what_a_run_makes_for_itself_does_not_run_in_it() -> None:
    ending = Ending(code=0, mode="jit", refused=("/w/b/test", "/usr/bin/id"), writable=("/w",))
    (line,) = advise(ending)
    assert "(test)" in line
    assert "`exec: {mode: any}` permits to make programs and run them" in line
    assert advise(replace(ending, refused=("/usr/bin/id", "/work/x"))) == []


def test_what_is_listed_and_not_here_is_said_when_something_went_wrong() -> None:
    assert advise(Ending(code=0, mode="closed", missing=("cc1",))) == []
    for ending in (
        Ending(code=1, mode="closed", missing=("cc1", "/opt/x")),
        Ending(code=0, mode="closed", missing=("cc1", "/opt/x"), denied_any=True),
    ):
        (line,) = advise(ending)
        assert line.startswith(
            "listed under exec and not here, or not in the view: cc1, /opt/x (a name without /"
        )
    (by_path,) = advise(Ending(code=1, mode="closed", missing=("/opt/x",)))
    assert by_path == "listed under exec and not here, or not in the view: /opt/x"


@pytest.mark.parametrize(("code", "refused", "is_said"), [(134, 2, True), (133, 0, False), (1, 4, False)])
def test_unix_sockets_are_named_when_the_command_died(code: int, refused: int, is_said: bool) -> None:
    """Chromium aborts (134) without them; curl asks for them at each look-up and goes on."""
    lines = advise(Ending(code=code, mode="any", unix_sockets_refused=refused))
    assert any("unix-sockets: true" in line for line in lines) == is_said


@pytest.mark.parametrize(
    ("code", "program", "is_said"), [(1, "python3.11", True), (0, "python3", False), (1, "curl", False)]
)
def test_unix_sockets_are_named_when_a_python_failed_that_wanted_one(
    code: int, program: str, is_said: bool
) -> None:
    """Python asks for a user seldom, and needs sockets for multiprocessing's Manager and forkserver."""
    ending = Ending(code=code, mode="closed", unix_sockets_refused=1, unix_sockets_wanted_by=(program,))
    assert any("unix-sockets: true" in line for line in advise(ending)) == is_said


def test_a_command_that_did_not_start_is_explained_by_its_file(tmp_path: Path) -> None:
    plain, orphan, hidden = tmp_path / "plain.py", tmp_path / "orphan", tmp_path / "hidden"
    plain.write_text("#!/usr/bin/env sh\n")
    orphan.write_text("#!/no/such/interpreter -x\n")
    orphan.chmod(0o755)
    hidden.write_bytes(b"\x7fELF")
    hidden.chmod(0o755)
    assert explain_start_failure(str(plain), errno.EACCES) == (
        f"it is not marked as executable: chmod +x {plain}, or start it by its interpreter: sh {plain}"
    )
    assert explain_start_failure(str(orphan), errno.ENOENT) == (
        "its first line names an interpreter that is not here: #!/no/such/interpreter -x"
    )
    assert explain_start_failure(str(hidden), errno.ENOENT) == (
        f"it is here, and the command's view does not show it: --read {hidden}"
    )
    assert explain_start_failure(str(hidden), errno.EACCES) is None
    assert explain_start_failure(str(tmp_path / "none"), errno.ENOENT) is None
