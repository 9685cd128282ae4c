"""What an entry of `exec: allow` may look like, and which programs it names."""

from __future__ import annotations

import pytest
from policy_texts import load

from stockade.decision.commands import ProgramList
from stockade.policy.model import ExecPolicy
from stockade.policy.problems import PolicyError, Rejected
from stockade.policy.programs import parse_program


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("git", "git"),
        ("g++", "g++"),
        ("[", "["),  # the program of coreutils
        ("/usr/bin/git", "/usr/bin/git"),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/*"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/*/*/cc1"),
        ("/usr/lib/llvm-*/bin/*", "/usr/lib/llvm-*/bin/*"),
        ("/usr/bin/*", "/usr/bin/*"),  # lint warns
        ("./tools/check", "./tools/check"),
        ("tools/check", "./tools/check"),
        (".venv/bin/tool", "./.venv/bin/tool"),
        ("./check", "./check"),
        ("~/.cargo/bin/cargo", "~/.cargo/bin/cargo"),
    ],
)
def test_an_entry_is_a_name_a_path_or_a_pattern(text: str, entry: str) -> None:
    assert parse_program(text) == entry
    assert parse_program(entry) == entry


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "program-unclear"),
        (".", "program-unclear"),
        ("..", "program-unclear"),
        ("~", "program-unclear"),
        ("~other/bin/x", "program-unclear"),
        ("git push", "program-unclear"),
        ("/usr/bin/", "program-unclear"),
        ("/usr//bin/git", "program-unclear"),
        ("/usr/./bin/git", "program-unclear"),
        ("/usr/bin/../bin/git", "program-unclear"),
        ("./../x", "program-unclear"),
        ("../x", "program-unclear"),
        ("/proc/self/exe", "program-unclear"),
        ("/dev/fd/7", "program-unclear"),
        ("a\x00b", "program-unclear"),
        ("/usr/bin/\u202egit", "program-unclear"),
        ("/" + "a" * 4096, "program-unclear"),
        # patterns
        ("gcc-*", "program-unclear"),
        ("/usr/bin/gcc-?", "program-unclear"),
        ("/usr/bin/[a-z]*", "program-unclear"),
        ("./node_modules/.bin/*", "program-unclear"),
        ("~/bin/*", "program-unclear"),
        ("/**", "program-too-broad"),
        ("/usr/lib/**", "program-too-broad"),
        ("/usr/lib/**/cc1", "program-too-broad"),
        ("/*", "program-too-broad"),
        ("/bin/*", "program-too-broad"),
        ("/usr/*", "program-too-broad"),
        ("/usr/*/git", "program-too-broad"),
        ("/*/bin/git", "program-too-broad"),
        ("/opt/*/bin/tool", "program-too-broad"),
        ("/usr*/lib/x/y", "program-too-broad"),
    ],
)
def test_what_is_unclear_or_could_be_anything_does_not_load(text: str, code: str) -> None:
    with pytest.raises(Rejected) as caught:
        parse_program(text)
    assert caught.value.code == code
    assert caught.value.better


def test_the_message_has_the_line_and_a_better_spelling() -> None:
    with pytest.raises(PolicyError) as caught:
        load('version: 1\nexec:\n  allow:\n    - git\n    - "/usr/**"\n')
    assert caught.value.message.startswith("policy.yaml:5: program-too-broad: ")
    assert caught.value.hint is not None
    assert "/usr/lib/gcc/*/*/cc1" in caught.value.hint


@pytest.mark.parametrize(
    ("entry", "program"),
    [
        ("git", "git"),
        ("git", "/usr/bin/git"),
        ("git", "/usr/local/bin/git"),
        ("git", "/bin/git"),
        ("/usr/bin/git", "git"),
        ("/usr/bin/git", "/usr/bin/git"),
        ("/opt/x/git", "/opt/x/git"),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/git-submodule"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/aarch64-linux-gnu/14/cc1"),
        ("/usr/bin/gcc-*", "gcc-12"),
        ("/usr/bin/gcc-*", "/usr/bin/gcc-"),
        ("/usr/bin/g++-*", "/usr/bin/g++-12"),
        ("./tools/check", "./tools/check"),
        ("./tools/check", "tools/check"),
    ],
)
def test_an_entry_names_a_program(entry: str, program: str) -> None:
    assert ProgramList(ExecPolicy(allow=("other", entry))).find(program) == entry


@pytest.mark.parametrize(
    ("entry", "program"),
    [
        ("git", "./git"),
        ("git", "/work/git"),
        ("git", "/usr/bin/sub/git"),
        ("git", "Git"),
        ("git", "/usr/lib/git-core/git"),
        ("/opt/x/git", "git"),
        ("/usr/lib/git-core/*", "git-submodule"),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/"),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/."),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/.."),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/.hidden"),
        ("/usr/lib/git-core/*", "/usr/lib/git-core/mergetools/meld"),
        ("/usr/lib/git-core/*", "/usr/lib/git-core"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/../../cc1"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/12/cc1"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/a/b/c/cc1"),
        ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/a/b/cc1\n"),
        ("/usr/bin/g++-*", "/usr/bin/ggg-12"),  # + is a letter here, no operator
        ("/usr/bin/x.y*", "/usr/bin/xzy"),
        ("./tools/check", "../tools/check"),
        ("./tools/check", "check"),
        ("~/.cargo/bin/cargo", "cargo"),
    ],
)
def test_an_entry_names_nothing_beside_itself(entry: str, program: str) -> None:
    assert ProgramList(ExecPolicy(allow=("other", entry))).find(program) is None


def test_of_two_entries_for_one_program_the_first_is_told() -> None:
    assert ProgramList(ExecPolicy(allow=("/usr/bin/git", "git"))).find("git") == "/usr/bin/git"
    assert ProgramList(ExecPolicy(allow=("git", "/usr/bin/git"))).find("/usr/bin/git") == "git"
    assert ProgramList(None).find("git") is None
