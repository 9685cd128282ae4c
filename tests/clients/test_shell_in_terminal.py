"""A person at a shell under `exec/coding`: jobs, keys, editors, and how a refusal looks there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doubles.screens import Screen

pytestmark = [pytest.mark.kernel, pytest.mark.clients, pytest.mark.needs("userns", "bwrap", "room")]


@pytest.fixture
def shell(stockade: Any, workspace: Path, policy_file: Any) -> Iterator[Screen]:
    """An interactive bash, whose prompt is `>` and a space."""
    (workspace / "rc").write_text("PS1='> '; set +o history; bind 'set enable-bracketed-paste off'\n")
    policy = policy_file("include: [exec/coding]\nfiles: {write: [.]}\n")
    command = [stockade.command, "run", "-p", str(policy), "--ledger", str(policy.parent / "ledger")]
    command += ["--", "bash", "--rcfile", "rc", "-i"]

    def start(**kept: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "TERM": "xterm"}  # a pager asks what it stands in; CI has no terminal
        return subprocess.Popen(command, cwd=workspace, env=environment, **kept)

    screen = Screen(start)
    screen.expect(b"> ")
    yield screen
    screen.close()


def press(screen: Screen, keys: bytes, until: bytes) -> str:
    """Type something; gives what was shown from then on, up to `until`."""
    screen.seen = b""
    screen.type(keys)
    return screen.expect(until).decode(errors="replace")


def answer(screen: Screen, line: bytes) -> list[str]:
    """Type a line; gives what was shown between it and the next prompt."""
    return press(screen, line + b"\r", b"\r\n> ").split("\r\n")[1:-1]


# Says when it has the terminal: a key that comes earlier would be the shell's.
JOB = (
    b'python3 -c "import os, time; from signal import *;'
    b" signal(SIGCONT, lambda *_: os.write(1, b'again\\n'));"
    b" os.write(1, b'start' + b'ed\\n'); time.sleep(60); time.sleep(60)\"\r"
)


def test_jobs_are_stopped_continued_and_ended_by_keys(shell: Screen) -> None:
    press(shell, JOB, b"started\r\n")
    assert "Stopped" in press(shell, b"\x1a", b"\r\n> ")
    assert "Stopped" in answer(shell, b"jobs")[0]
    press(shell, b"fg\r", b"again\r\n")
    press(shell, b"\x03", b"> ")
    assert answer(shell, b"echo $?") == ["130"]
    assert answer(shell, b"sleep 60 &")[0].startswith("[1] ")
    assert "Running" in answer(shell, b"jobs")[0]
    assert answer(shell, b"kill %1; wait 2>/dev/null; jobs; echo none")[-1] == "none"


def test_what_is_refused_looks_other_than_what_is_not_there(shell: Screen) -> None:
    assert answer(shell, b"no-such-program") == ["bash: no-such-program: command not found"]
    assert answer(shell, b"unshare true") == ["bash: /usr/bin/unshare: Permission denied"]
    assert answer(shell, b"stty size; tty") == ["30 90", "/dev/pts/0"]
    shell.type(b"exit 3\r")
    assert shell.end() == 3
    assert b"stockade: 1 attempt denied" in shell.seen
    assert b"add `exec: {allow: [unshare]}`" in shell.seen


def test_a_pager_and_an_interpreter_own_the_terminal_while_they_run(shell: Screen) -> None:
    press(shell, b"less /etc/passwd\r", b"(END)")
    press(shell, b"q", b"> ")
    press(shell, b"python3 -q\r", b">>> ")
    press(shell, b"6 * 7\r", b"42\r\n>>> ")
    press(shell, b"\x04", b"> ")
    assert answer(shell, b"echo back") == ["back"]
