"""Which files `exec:` means, resolved once: names, links, scripts, env, families, and what is not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stockade.errors import UserError
from stockade.policy.model import ExecPolicy
from stockade.sandbox.programs import (
    Program,
    ProgramSet,
    interpreters_in,
    probe_programs,
)

Probe = Callable[..., ProgramSet]


@pytest.fixture
def probe(tmp_path: Path) -> Probe:
    def run(
        *allow: str,
        launched: str = "",
        writable: tuple[str, ...] = (),
        search_path: tuple[str, ...] = (),
        hidden: str = "/nothing",
    ) -> ProgramSet:
        return probe_programs(
            ExecPolicy(allow=allow),
            launched=launched,
            workspace=str(tmp_path),
            writable=writable,
            search_path=[*search_path, "/usr/bin", "/bin"],
            is_shown=lambda path: not path.startswith(hidden),
        )

    return run


def script(path: Path, first_line: str) -> Path:
    path.write_text(first_line + "\n")
    path.chmod(0o755)
    return path


def paths(found: ProgramSet) -> list[str]:
    return [program.path for program in found.programs]


def test_a_name_is_the_real_file_of_the_fixed_folders_whatever_path_is_set(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "cat", "#!/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe("cat")
    assert paths(found) == [os.path.realpath("/usr/bin/cat")]
    assert found.programs[0].identity == (os.stat("/usr/bin/cat").st_dev, os.stat("/usr/bin/cat").st_ino)
    assert found.programs[0].why == "exec: cat"


def test_a_program_knows_the_line_that_lists_it_and_an_interpreter_has_none(
    tmp_path: Path, probe: Probe
) -> None:
    tool = script(tmp_path / "tool", "#!/bin/sh")
    policy = ExecPolicy(
        allow=("cat", "./tool"), origins=("policy.yaml:3", "preset:exec/x:9"), origin="policy.yaml:2"
    )
    found = probe_programs(
        policy, launched="/bin/ls", workspace=str(tmp_path), writable=(), search_path=["/usr/bin"]
    )
    origins = {program.path: program.origin for program in found.programs}
    assert origins == {
        os.path.realpath("/bin/ls"): "",
        os.path.realpath("/usr/bin/cat"): "policy.yaml:3",
        str(tool): "preset:exec/x:9",
        os.path.realpath("/bin/sh"): "",
    }


@pytest.fixture
def installation(tmp_path: Path) -> Callable[[str], Path]:
    """A Python installation, as version managers make it: ``bin/python3.11`` beside its standard library."""

    def make(name: str) -> Path:
        python = tmp_path / name / "bin" / "python3.11"
        library = tmp_path / name / "lib" / "python3.11"
        python.parent.mkdir(parents=True)
        library.mkdir(parents=True)
        (library / "os.py").touch()
        python.write_bytes(b"\x7fELF")
        python.chmod(0o755)
        return python

    return make


def pythons(workspace: Path, target: Path, *allow: str, writable: tuple[str, ...] = ()) -> list[Program]:
    """What may run when ``.venv/bin/python`` leads there, besides what lies below /usr."""
    link = workspace / ".venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    found = probe_programs(
        ExecPolicy(allow=allow), launched="", workspace=str(workspace), writable=writable, search_path=[]
    )
    return [program for program in found.programs if not program.path.startswith("/usr/")]


def test_python_means_that_of_the_workspaces_environment_too(
    tmp_path: Path, installation: Callable[[str], Path]
) -> None:
    """As uv and pyenv install it: outside the fixed folders, and outside what a worker can write."""
    python = installation("managed")
    (tmp_path / "w").mkdir()
    (found,) = pythons(tmp_path / "w", python, "git", "python3", writable=(str(tmp_path / "w"),))
    assert (found.path, found.why) == (str(python), "Python of .venv/bin/python (exec: python3)")


@pytest.mark.parametrize(
    "case", ["not listed", "by path", "writable", "workspace", "other program", "no library"]
)
def test_a_planted_environment_permits_nothing_else(
    tmp_path: Path, installation: Callable[[str], Path], case: str
) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    target = installation("w/own" if case == "workspace" else "managed")
    if case == "other program":
        target = Path(os.path.realpath("/usr/bin/id"))
    if case == "no library":
        (tmp_path / "managed" / "lib" / "python3.11" / "os.py").unlink()
    allow = {"not listed": "git", "by path": "/usr/bin/python3"}.get(case, "python3")
    writable = (str(tmp_path / "managed"),) if case == "writable" else (str(workspace),)
    assert pythons(workspace, target, allow, writable=writable) == []
    if case == "other program":
        found = probe_programs(
            ExecPolicy(allow=("python3",)), launched="", workspace=str(workspace), writable=(), search_path=[]
        )
        assert "/usr/bin/id" not in paths(found)


def test_links_lead_to_one_program_and_it_has_a_loader(probe: Probe) -> None:
    found = probe("/bin/sh", "/usr/bin/sh", "sh")
    assert paths(found) == [os.path.realpath("/bin/sh")]
    assert [os.path.basename(loader)[:2] for loader in found.loaders] == ["ld"]
    assert os.path.realpath(found.loaders[0]) == found.loaders[0]


def test_a_script_brings_its_interpreter_and_env_the_one_behind_it(probe: Probe, tmp_path: Path) -> None:
    plain = script(tmp_path / "plain", "#!/bin/sh -e")
    by_env = script(tmp_path / "by_env", "#!/usr/bin/env -S python3 -u")
    found = probe(str(plain), str(by_env))
    names = [os.path.basename(path) for path in paths(found)]
    assert names[:2] == ["plain", os.path.basename(os.path.realpath("/bin/sh"))]
    assert names[2:4] == ["by_env", "env"]
    assert names[4].startswith("python3")
    assert found.programs[4].why == "interpreter of by_env"
    assert [program.is_script for program in found.programs] == [True, False, True, False, False]


def test_a_script_of_a_script_is_followed_and_a_loop_ends(probe: Probe, tmp_path: Path) -> None:
    inner = script(tmp_path / "inner", "#!/bin/sh")
    outer = script(tmp_path / "outer", f"#!{inner}")
    assert len(paths(probe(str(outer)))) == 3
    loop = tmp_path / "loop"
    script(loop, f"#!{loop}")
    assert paths(probe(str(loop))) == [str(loop)]


def test_the_launched_text_without_a_shebang_is_a_shell_script_and_a_listed_one_is_not(
    probe: Probe, tmp_path: Path
) -> None:
    text = script(tmp_path / "text", "echo hello")
    assert os.path.realpath("/bin/sh") in paths(probe(launched=str(text)))
    assert paths(probe(str(text))) == [str(text)]


def test_what_is_not_there_is_said_and_stops_nothing(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    found = probe("no-such-program", "/no/such/file", "./data", "cat")
    assert found.missing == ("no-such-program", "/no/such/file", "./data")
    assert paths(found) == [os.path.realpath("/usr/bin/cat")]


def test_r134_a_link_in_a_writable_folder_is_not_followed(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "tool").symlink_to("/bin/sh")
    with pytest.raises(UserError, match="link"):
        probe(str(tmp_path / "tool"), writable=(str(tmp_path),))
    assert paths(probe(str(tmp_path / "tool"))) == [os.path.realpath("/bin/sh")]  # the operator's own link


def test_r134_a_link_of_the_operator_s_does_not_lead_through_one_of_a_worker_s(
    probe: Probe, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "tool").symlink_to(work / "tool")
    (work / "tool").symlink_to("/bin/sh")
    (tmp_path / "folder").symlink_to(work / "folder")
    (work / "folder").symlink_to("/usr/bin")
    for entry in (f"{tmp_path}/tool", f"{tmp_path}/folder/env"):
        with pytest.raises(UserError, match="goes through"):
            probe(entry, writable=(str(work),))
        assert len(paths(probe(entry))) == 1
    (work / "tool").unlink()
    script(work / "tool", "#!/bin/sh")
    assert paths(probe(f"{tmp_path}/tool", writable=(str(work),)))[0] == str(work / "tool")


def test_a_family_finds_nothing_in_a_folder_that_the_worker_writes(probe: Probe, tmp_path: Path) -> None:
    script(tmp_path / "tool", "#!/bin/sh")
    with pytest.raises(UserError, match="an earlier run could have left it there"):
        probe(f"{tmp_path}/*", writable=(str(tmp_path),))
    assert probe(f"{tmp_path}/other*", "./tool", writable=(str(tmp_path),)).programs[0].why == "exec: ./tool"


def test_env_finds_no_program_that_a_worker_can_have_left_on_the_path(probe: Probe, tmp_path: Path) -> None:
    shell, python = os.path.realpath("/bin/sh"), os.path.realpath("/usr/bin/python3")
    planted = tmp_path / "work" / "bin"
    planted.mkdir(parents=True)
    by_env = str(script(tmp_path / "by_env", "#!/usr/bin/env python3"))
    by_path = str(script(tmp_path / "by_path", f"#!{planted}/python3"))
    options = {"writable": (str(tmp_path / "work"),), "search_path": (str(planted),)}

    (planted / "python3").symlink_to("/bin/sh")
    assert shell not in paths(probe(by_env, by_path, **options))
    assert python in paths(probe(by_env, **options))  # the next one on the path
    assert shell in paths(probe(by_env, search_path=(str(planted),)))  # the operator's own folder

    (planted / "python3").unlink()
    script(planted / "python3", "#!/bin/sh")
    assert shell not in paths(probe(by_env, **options))

    (planted / "python3").unlink()
    (planted / "python3").symlink_to(python)  # as a virtual environment has it
    assert paths(probe(by_path, **options)) == [by_path, python]


def test_what_the_view_does_not_show_is_not_there(probe: Probe, tmp_path: Path) -> None:
    tool = str(script(tmp_path / "tool", "#!/bin/sh"))
    assert probe(tool, hidden=str(tmp_path)).missing == (tool,)
    assert probe(tool).missing == ()
    assert paths(probe(launched=tool, hidden=str(tmp_path)))[0] == tool


def test_a_family_is_matched_once_and_one_that_matches_too_much_is_refused(
    probe: Probe, tmp_path: Path
) -> None:
    for number in range(3):
        script(tmp_path / f"tool{number}", "#!/bin/sh")
    (tmp_path / "tool.txt").write_text("not executable")
    assert len(paths(probe(f"{tmp_path}/tool*"))) == 4  # three, and their interpreter
    with pytest.raises(UserError, match="more than"):
        probe("/usr/share/doc/*/*")


def test_env_without_a_program_permits_env_alone() -> None:
    def find(name: str) -> str:
        return {"sh": "/bin/sh"}.get(name, "")

    assert interpreters_in(b"#!/usr/bin/env\n", find) == ["/usr/bin/env"]
    assert interpreters_in(b"#!/usr/bin/env no-such\n", find) == ["/usr/bin/env"]
    assert interpreters_in(b"#!/usr/bin/env sh\n", find) == ["/usr/bin/env", "/bin/sh"]


def test_a_relative_interpreter_is_below_the_worker_s_folder(probe: Probe, tmp_path: Path) -> None:
    # execve(2): the kernel takes the line's path as it is, so it starts from the caller's folder.
    tool = script(tmp_path / "tool", "#!/bin/sh")
    found = probe(str(script(tmp_path / "by_tool", "#!tool")))
    assert paths(found)[:2] == [str(tmp_path / "by_tool"), str(tool)]


def test_many_entries_mean_the_same_files_as_few(probe: Probe) -> None:
    # From sixteen on the folders are listed; one more way to ask must not give another answer.
    names = ("cat", "ls", "cp", "mv", "rm", "ln", "env", "id", "head", "tail", "sort", "uniq", "wc", "tr")
    many = probe(*names, "sh", "/usr/bin/du", "/usr/bin/chm*", "no-such-program")
    one_by_one = [path for name in (*names, "sh", "/usr/bin/du") for path in paths(probe(name))]
    assert [path for path in paths(many) if not os.path.basename(path).startswith("chm")] == list(
        dict.fromkeys(one_by_one)
    )
    assert "/usr/bin/chmod" in paths(many)
    assert many.missing == ("no-such-program",)


def test_a_star_is_no_leading_dot_and_a_dot_that_is_written_is(probe: Probe, tmp_path: Path) -> None:
    plain, hidden = script(tmp_path / "tool", "#!/bin/sh"), script(tmp_path / ".tool", "#!/bin/sh")
    assert str(plain) in paths(probe(f"{tmp_path}/*"))
    assert str(hidden) not in paths(probe(f"{tmp_path}/*"))
    assert str(hidden) in paths(probe(f"{tmp_path}/.*"))


def test_a_chain_that_the_kernel_refuses_hides_no_shorter_one(probe: Probe, tmp_path: Path) -> None:
    # Six scripts, each run by the next: the first is too deep for the kernel (ELOOP), the second is not.
    chain = [tmp_path / f"s{number}" for number in range(7)]
    script(chain[6], "#!/bin/sh")
    for number in range(6):
        script(chain[number], f"#!{chain[number + 1]}")
    assert str(chain[6]) not in paths(probe(str(chain[0])))
    assert str(chain[6]) in paths(probe(str(chain[0]), str(chain[1])))


def test_links_that_lead_nowhere_are_no_program(probe: Probe, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    (tmp_path / "gone").symlink_to("/no/such/file")
    assert probe("./one", "./gone").missing == ("./one", "./gone")
