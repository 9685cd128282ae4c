"""Git's settings: what they name, and which of a worker's are harmless. Git itself is the measure."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stockade.sandbox.git_config import command_words, is_plain_config, parse_config

PARSED = r"""
# a comment
[core]
	repositoryformatversion = 0
	bare=false
	hooksPath = "with space" ; behind it
	excludesFile = a\
b
	pager
[Remote "Origin"] url = "a#b" # c
[filter "x\"y"]
	clean = tool \"q\" %f
[old.Section]
	Key = value
[include]
	path = ../shared
"""


def git_says(text: bytes, folder: Path) -> dict[str, str]:
    """The same settings as git reads them; empty if it refuses the file."""
    (folder / "config").write_bytes(text)
    done = subprocess.run(
        ["git", "config", "-f", str(folder / "config"), "--no-includes", "-z", "--list"], capture_output=True
    )
    entries = [entry.partition(b"\n") for entry in done.stdout.split(b"\0") if entry]
    return {key.decode(): value.decode() if mark else "true" for key, mark, value in entries}


@pytest.mark.needs("git")
def test_settings_are_read_as_git_reads_them(tmp_path: Path) -> None:
    theirs = git_says(PARSED.encode(), tmp_path)
    assert len(theirs) == 9
    assert {entry.name: entry.value for entry in parse_config(PARSED)} == theirs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[filter "x"]\n clean = tools/strip.py --fast \\"a b\\"', ["tools/strip.py", "--fast", "a b"]),
        ("[core]\n pager = less -R", ["less", "-R"]),
        ("[alias]\n run = !./run.sh now", ["./run.sh", "now"]),
        ("[alias]\n st = status", []),
        ('[submodule "a"]\n update = !./x', ["./x"]),
        ("[user]\n name = ./x", []),
        ("[core]\n pager = 'unclosed ./x", ["'unclosed", "./x"]),
    ],
)
def test_words_that_git_would_run(text: str, words: list[str]) -> None:
    assert [word for entry in parse_config(text) for word in command_words(entry)] == words


def inside(path: str) -> bool:
    return ".." not in path and not path.startswith("/")


def test_what_git_itself_writes_is_plain(tmp_path: Path) -> None:
    for words in (["init", "-q", "a"], ["clone", "-q", "a", "b"], ["init", "-q", "--bare", "c"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    for words in (
        ["remote", "add", "other", "ssh://git@host.test/x.git"],
        ["remote", "add", "third", "git@host.test:x/y.git"],
        ["config", "user.email", "a@b.test"],
        ["config", "branch.main.description", "said: yes"],
        ["config", "core.fsmonitor", "false"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path / "a", check=True)
    for path in ("a/.git/config", "b/.git/config", "c/config"):
        assert is_plain_config((tmp_path / path).read_bytes(), inside), path


# Each makes git run something, read other settings, or go elsewhere.
HARMFUL = [
    b"[core]\n\tfsmonitor = touch x\n",
    b"[core]fsmonitor=touch x\n",
    b"[core] fsmonitor = touch x\n",
    b'[core]\n\tfsmonitor = "fal\\\nse"\n',
    b"[core]\r\n\tfsmonitor = touch x\r\n",
    b"[user]\n\tname = a\\\n[core]\n",
    b"[CORE]\n\tFSMonitor = touch x\n",
    b"\xef\xbb\xbf[core]\n\thooksPath = x\n",
    b"[core]\n\thooksPath = x\n",
    b"[include]\n\tpath = x\n",
    b'[includeIf "gitdir:/"]\n\tpath = x\n',
    b'[filter "x"]\n\tclean = x\n',
    b"[alias]\n\tst = !x\n",
    b"[core]\n\tworktree = /home\n",
    b"[core]\n\tworktree = ../..\n",
    b'[remote "a"]\n\turl = ext::sh -c x\n',
    b'[remote "a"]\n\turl = -oProxyCommand=x\n',
    b'[remote "a"]\n\turl = ssh://-oProxyCommand=x/y\n',
    b'[remote "a"]\n\tpromisor = true\n',
    b'[remote "a"]\n\tuploadpack = x\n',
    b'[branch "a"]\n\tremote = ext::x\n',
    b'[submodule "a"]\n\tupdate = !x\n',
    b"[gpg]\n\tprogram = x\n",
    b"[credential]\n\thelper = x\n",
    b"[unknown]\n\tkey = value\n",
    b"key = value\n",
    b"[core]\n\tbare = false\0\n",
    b"\xff\n",
    b"#" * 70_000,
]


@pytest.mark.parametrize("text", HARMFUL, ids=[repr(text[:40]) for text in HARMFUL])
def test_what_makes_git_run_or_read_something_is_not_plain(text: bytes) -> None:
    assert not is_plain_config(text, inside)


# Odd spellings of harmless and harmful keys: whatever passes as plain has only harmless keys for git too.
ODD = [
    b"",
    b"\n \t\n",
    b"# only\n; comments\n",
    b"[core]\n\tbare = false # fsmonitor = x\n",
    b"[core]\n\tbare = false ; [core] fsmonitor = x\n",
    b"[core]\n# \\\n\tfsmonitor = x\n",
    b"[core]\n\tfilemode\n",
    b'[branch "a]b"]\n\tmerge = refs/heads/a\n',
    b'[remote "a"]\n\turl = "x" "y"\n',
    b"[core ]\n\tfsmonitor = x\n",
    b"[core]\x0b\n\tfsmonitor = x\n",
    b"[user]\x85[core]\n\tname = x\n\tfsmonitor = x\n",
    b"[user]\xc2\x85\n\tname = x\n",
    b"[user]\xe2\x80\xa8[core]\n\tname = x\n\tfsmonitor = x\n",
]
HARMLESS_KEYS = ("core.bare", "core.filemode", "branch.", "remote.a.url", "user.name")


@pytest.mark.needs("git")
@pytest.mark.parametrize("text", ODD, ids=[repr(text[:40]) for text in ODD])
def test_no_spelling_passes_as_plain_that_git_reads_as_something_else(text: bytes, tmp_path: Path) -> None:
    keys = git_says(text, tmp_path)
    is_harmless = all(key.startswith(HARMLESS_KEYS) for key in keys)
    assert is_harmless or not is_plain_config(text, inside), keys
