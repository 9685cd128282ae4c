"""A command without a policy: it runs with its interpreters, and a refusal says what permits it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stockade.policy.load import load_policy_text

pytestmark = [pytest.mark.kernel, pytest.mark.clients, pytest.mark.needs("userns", "bwrap", "room")]

Run = Callable[..., Any]
WRITABLE = pytest.mark.parametrize("extra", [[], ["--write", "."]], ids=["read-only", "writable"])


@pytest.fixture
def script(workspace: Path) -> Callable[[str, str], str]:
    def write(name: str, text: str) -> str:
        (workspace / name).write_text(text)
        (workspace / name).chmod(0o755)
        return f"./{name}"

    return write


def offers(run: Any) -> list[str]:
    """The lines of policy that the summary offers; every one of them loads."""
    found = re.findall(r"`((?:exec|include): [^`]+)`", run.err)
    for line in found:
        load_policy_text(f"version: 1\n{line}\n")
    return found


def test_an_interpreter_runs_its_script(stockade: Run, workspace: Path) -> None:
    (workspace / "s.py").write_text("print(6 * 7)")
    run = stockade(["python3", "s.py"])
    assert (run.out, run.code, run.err) == ("42\n", 0, "")


def test_a_command_that_the_system_chooses_among_alternatives_runs(stockade: Run) -> None:
    """`awk` leads over a link in /etc/alternatives, which is in the view already."""
    run = stockade(["awk", "BEGIN {print 6 * 7}"])
    assert (run.out, run.code, run.err) == ("42\n", 0, "")


@WRITABLE
def test_a_script_runs_with_its_interpreter_and_starts_nothing_else(
    stockade: Run, script: Callable[[str, str], str], extra: list[str]
) -> None:
    run = stockade([script("run.sh", "#!/bin/sh\necho shell\ncat run.sh\necho $?\n")], extra=extra)
    assert run.out == "shell\n126\n"
    assert "cat: Permission denied" in run.err
    assert offers(run) == ["exec: {allow: [cat]}"]
    run = stockade([script("run.py", "#!/usr/bin/env python3\nprint('python')\n")], extra=extra)
    assert (run.out, run.err) == ("python\n", "")
    run = stockade([script("plain", "echo 'no first line'\n")], extra=extra)
    assert (run.out, run.err) == ("no first line\n", "")


def test_what_is_offered_permits_what_was_refused(stockade: Run) -> None:
    command = ["bash", "-c", "ls /usr/bin/env; id -un"]
    refused = stockade(command)
    assert refused.out == ""
    (offered,) = offers(refused)
    assert offered == "exec: {allow: [id, ls]}"
    assert stockade(command, f"{offered}\n").out == "/usr/bin/env\nworker\n"


def test_many_refused_commands_get_one_proposal(stockade: Run) -> None:
    command = ["bash", "-c", "for each in ls id cat sed tr expr; do $each --version >/dev/null; done"]
    refused = stockade(command)
    assert refused.err.count("program-not-listed") == 0
    assert "6 programs that `exec:` does not list: " in refused.err
    assert offers(refused) == ["include: [exec/coding]", "exec: {allow: [cat, expr, id, ls, sed, tr]}"]
    for policy in offers(refused):
        assert stockade(command, f"{policy}\n").err == ""


def test_a_file_that_is_not_marked_as_a_program(stockade: Run, workspace: Path) -> None:
    (workspace / "s.py").write_text("#!/usr/bin/env python3\nprint(6 * 7)\n")
    run = stockade(["./s.py"])
    assert run.code == 126
    assert "chmod +x ./s.py, or start it by its interpreter: python3 ./s.py" in run.err
    os.chmod(workspace / "s.py", 0o755)
    assert stockade(["./s.py"]).out == "42\n"


def test_a_unix_socket_is_a_hint_only_for_a_python_that_failed(stockade: Run) -> None:
    asks = "import pwd; pwd.getpwnam('root')"  # the C library tries a socket (nscd) and goes on without
    assert stockade(["/usr/bin/python3", "-c", asks]).err == ""
    needs = "import multiprocessing; multiprocessing.Manager()"
    run = stockade(["/usr/bin/python3", "-c", needs])
    assert run.code == 1
    assert offers(run) == ["exec: {unix-sockets: true}"]
    assert stockade(["/usr/bin/python3", "-c", needs], f"{offers(run)[0]}\n").code == 0
