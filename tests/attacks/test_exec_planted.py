"""What a worker left in a writable folder gives the next one no program, no code and no setting.

Each try is made by a run that may write its workspace, on things that an earlier run can have
put there; beside it stands what the same policy permits.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room")]

PYTHON = "/usr/bin/python3"
WRITE = ["--write", "."]
LIBRARY = sorted(glob.glob("/usr/lib/*/libz.so.1.*"))[0]

READ_ONLY = "30"  # EROFS

Stockade = Callable[..., Any]


def by_python(stockade: Stockade, policy: str, program: str, *arguments: object, **more: Any) -> Any:
    return stockade([PYTHON, "-c", program, *map(str, arguments)], policy, extra=WRITE, **more)


def test_nothing_can_be_written_and_executed(stockade: Stockade, workspace: Path) -> None:
    """By the kernel's own list as the worker sees it, with git settings inside the library folder too."""
    subprocess.run(["git", "init", "-q", workspace / ".venv" / "src" / "x"], check=True)
    shutil.copy(LIBRARY, workspace / ".venv" / "src" / "x.so")
    shutil.copy("/usr/bin/true", workspace / "tool")
    look = """
import ctypes
mounts = [line.split()[4:6] for line in open("/proc/self/mountinfo")]
print([where for where, options in mounts if not {"ro", "noexec"} & set(options.split(","))])
ctypes.CDLL(".venv/src/x.so")
"""
    done = by_python(stockade, "exec: {allow: [python3, ./tool], libraries: [.venv]}\n", look)
    assert done.out.strip() == "[]", done.err
    assert done.code == 0, done.err


def test_a_workspace_inside_the_program_s_own_tree_is_writable_and_not_executable(
    stockade: Stockade, workspace: Path, tmp_path: Path
) -> None:
    application = tmp_path / "application"
    (application / "lib").mkdir(parents=True)
    (application / "bin").mkdir()
    shutil.copy(PYTHON, application / "bin" / "tool")
    workspace.rename(application / "work")
    workspace.symlink_to(application / "work")
    program = f"""
import ctypes, shutil
shutil.copy({LIBRARY!r}, "own.so")
try:
    ctypes.CDLL("./own.so")
    print("loaded")
except OSError as error:
    print(error)
"""
    command = [str(application / "bin" / "tool"), "-c", program]
    done = stockade(command, "exec: {}\n", extra=WRITE)
    assert "failed to map" in done.out, done.out + done.err
    assert stockade(command, "exec: {mode: any}\n", extra=WRITE).out == "loaded\n"


def test_env_starts_no_program_that_lies_in_the_workspace(
    stockade: Stockade, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual PATH of a virtual environment, and a listed script for `env NAME`."""
    programs = workspace / ".venv" / "bin"
    programs.mkdir(parents=True)
    shutil.copy("/usr/bin/id", programs / "nosuchprogram")
    (programs / "python3").symlink_to(PYTHON)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    shown = tmp_path / "shown"
    shown.mkdir()
    for name in ("nosuchprogram", "python3"):
        (shown / f"by-{name}").write_text(f"#!/usr/bin/env {name}\nprint(4711)\n")
        (shown / f"by-{name}").chmod(0o755)
    policy = f"files: {{read: ['{shown}']}}\nexec: {{allow: [python3, '{shown}/*']}}\n"
    program = """
import subprocess, sys
for command in sys.argv[1:]:
    done = subprocess.run([command], capture_output=True, text=True)
    print(command[-1], done.returncode, done.stdout.strip() or "nothing")
"""
    done = by_python(stockade, policy, program, shown / "by-nosuchprogram", shown / "by-python3")
    assert done.out.splitlines() == ["m 126 nothing", "3 0 4711"], done.err  # env(1): 126, not executable
    assert [record["program"] for record in done.denials(entry="exec")] == [f"{programs}/nosuchprogram"]


@pytest.mark.needs("git")
@pytest.mark.parametrize("mode", ["exec: {allow: [python3]}\n", "exec: {mode: any}\n"])
def test_a_second_name_of_a_setting_or_of_a_policy_does_not_rewrite_it(
    stockade: Stockade, workspace: Path, tmp_path: Path, mode: str
) -> None:
    """What git, an editor or the next run obeys; whoever made the link, the operator looks at one name."""
    subprocess.run(["git", "init", "-q", workspace], check=True)
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "tasks.json").write_text("{}")
    (workspace / "policy.yaml").write_text("version: 1\n" + mode)
    guarded = [workspace / ".git" / "config", workspace / ".vscode" / "tasks.json", workspace / "policy.yaml"]
    for number, path in enumerate(guarded):
        os.link(path, workspace / f"second{number}")
    (workspace / "plain").write_text("plain")
    os.link(workspace / "plain", workspace / "second-plain")
    before = [path.read_bytes() for path in guarded]
    program = """
import glob
for name in sorted(glob.glob("second*")):
    try:
        open(name, "a").write("x")
        print("written")
    except OSError as error:
        print(error.errno)
"""
    done = stockade([PYTHON, "-c", program], extra=[*WRITE, "-p", str(workspace / "policy.yaml")])
    assert done.out.split() == ["written", *[READ_ONLY] * 3], done.err
    assert [path.read_bytes() for path in guarded] == before


@pytest.mark.parametrize("entry", ["WORK/bin/*", "OUTSIDE/tool"])
def test_a_list_that_a_planted_file_or_link_would_widen_stops_the_run(
    stockade: Stockade, workspace: Path, tmp_path: Path, entry: str
) -> None:
    (workspace / "bin").mkdir()
    shutil.copy("/usr/bin/id", workspace / "bin" / "planted")
    (workspace / "tool").symlink_to("/usr/bin/id")
    (tmp_path / "tool").symlink_to(workspace / "tool")
    entry = entry.replace("WORK", str(workspace)).replace("OUTSIDE", str(tmp_path))
    done = stockade([PYTHON, "-c", "1"], f"exec: {{allow: ['{entry}']}}\n", extra=WRITE)
    assert (done.code, done.records) == (102, []), done.err
    assert entry in done.err
    # The same where the worker does not write: it is the operator's own.
    assert stockade([PYTHON, "-c", "1"], f"exec: {{allow: ['{entry}']}}\n").code == 0


SWAP = """
import os, shutil, sys
from pathlib import Path
from stockade.errors import ContainmentError
from stockade.policy.model import ExecPolicy
from stockade.reactor import Reactor
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import Sandbox
work = Path.cwd()
request = SandboxRequest(argv=("true",), workspace=work, write=(work,), exec=ExecPolicy(allow=("./tool",)))
plan = plan_sandbox(request, probe_host(request))
if sys.argv[1] == "swap":
    shutil.copy("/usr/bin/id", "new")
    os.rename("new", "tool")
sandbox = Sandbox(plan, Reactor())
try:
    sandbox.build()
    print("built")
except ContainmentError as error:
    print(error.code)
finally:
    sandbox.close()
"""


@pytest.mark.parametrize(("how", "outcome"), [("leave", "built\n"), ("swap", "view-changed\n")])
def test_a_listed_program_that_another_run_replaces_during_the_start_stops_it(
    workspace: Path, how: str, outcome: str
) -> None:
    shutil.copy("/usr/bin/true", workspace / "tool")
    done = subprocess.run(
        [sys.executable, "-c", SWAP, how], cwd=workspace, capture_output=True, text=True, timeout=15
    )
    assert done.stdout == outcome, done.stderr
