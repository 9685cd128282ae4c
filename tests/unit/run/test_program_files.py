"""Names and entries to files of this machine, links and scripts looked through."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.decision.script import Script
from stockade.policy.model import ExecPolicy
from stockade.run import program_files
from stockade.run.program_files import probe_file, probe_listed, probe_script


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program folder of our own; the working folder is beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(program_files, "PROGRAM_FOLDERS", (str(folder),))
    return folder


def program(path: Path, text: str = "\x7fELF", mode: int = 0o755) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_name_is_looked_for_in_the_program_folders_and_a_path_is_itself(bin_folder: Path) -> None:
    tool = program(bin_folder / "tool-12")
    (bin_folder / "tool").symlink_to("tool-12")
    script = program(Path("s.py").absolute())
    assert probe_file("tool") == tool
    assert probe_file(str(bin_folder / "tool")) == tool
    assert probe_file("./s.py") == script
    assert probe_file("s.py") is None  # not on the PATH
    program(bin_folder / "text", mode=0o644)
    (bin_folder / "folder").mkdir()
    (bin_folder / "dangling").symlink_to("nowhere")
    for name in ("text", "folder", "dangling", "absent", "", "./absent", "a\0b"):
        assert probe_file(name) is None


def test_what_is_listed_is_files_with_their_entries(bin_folder: Path, tmp_path: Path) -> None:
    tool = program(bin_folder / "tool-12")
    (bin_folder / "tool").symlink_to("tool-12")
    passes = [program(tmp_path / "lib" / "gcc" / version / "cc1") for version in ("12", "13")]
    program(tmp_path / "lib" / "gcc" / "12" / "notes", mode=0o644)
    pattern = f"{tmp_path}/lib/gcc/*/*"
    listed = probe_listed(ExecPolicy(allow=("tool", pattern, "absent", "/no/such/file", f"{tmp_path}/no/*")))
    assert listed == {tool: "tool", passes[0]: pattern, passes[1]: pattern}


def test_a_listed_script_brings_its_interpreter_and_what_env_starts(bin_folder: Path, tmp_path: Path) -> None:
    shell, env, node = (program(bin_folder / name) for name in ("shell", "env", "node"))
    one = program(tmp_path / "one", f"#!{shell}\n")
    two = program(tmp_path / "two", f"#!{env} node\n")
    three = program(tmp_path / "three", f"#!{one} -x\n")  # an interpreter may be a script
    assert probe_listed(ExecPolicy(allow=(one,))) == {one: one, shell: f"interpreter of {one}"}
    assert set(probe_listed(ExecPolicy(allow=(two,)))) == {two, env, node}
    assert set(probe_listed(ExecPolicy(allow=(three,)))) == {three, one, shell}


def test_a_script_that_interprets_itself_comes_to_an_end(bin_folder: Path, tmp_path: Path) -> None:
    loop = str(tmp_path / "loop")
    program(tmp_path / "loop", f"#!{loop}\n")
    assert probe_listed(ExecPolicy(allow=(loop,))) == {loop: loop}


def test_an_entry_below_the_home_is_found(
    bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    tool = program(tmp_path / ".cargo" / "bin" / "cargo")
    assert probe_listed(ExecPolicy(allow=("~/.cargo/bin/cargo",))) == {tool: "~/.cargo/bin/cargo"}


def test_only_what_begins_with_the_two_characters_is_a_script(tmp_path: Path) -> None:
    assert probe_script(program(tmp_path / "a", "#!/bin/sh -e\n")) == Script("/bin/sh", "-e")
    assert probe_script(program(tmp_path / "b")) is None
    assert probe_script(str(tmp_path / "absent")) is None


def test_no_key_lists_nothing() -> None:
    assert probe_listed(None) == {}
