"""Public reports of kinds STARTUP, PROCESS and LOG, by the command as a person calls it.

`tests/kernel` has the same cases at the sandbox alone; here ledger, gateway and exit code take part.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_steps import ENTRIES, Tried, allow, get, ok

from stockade.prove.world_client import World

pytestmark = [pytest.mark.kernel, pytest.mark.needs("world", "userns", "bwrap", "room")]

Do = Callable[..., Tried]
COMMAND = str(Path(sys.prefix) / "bin" / "stockade")
APP, EVIL = "93.184.216.34", "93.184.216.66"
APP_ONLY = allow("app.test")


# --- STARTUP ---------------------------------------------------------------------------------------


@pytest.fixture
def broken_helper(tmp_path: Path) -> Callable[[str, str], list[str]]:
    """A prefix under which one helper program is a script of ours, found before the system's."""

    def replace(name: str, script: str) -> list[str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        for opened in (folder, *list(tmp_path.parents)[:2], tmp_path):
            opened.chmod(0o755)
        return ["env", f"PATH={folder}:{os.environ['PATH']}"]

    return replace


LEAVE = "curl -s -m 5 http://evil.test/; touch started"


BROKEN = {
    **{f"{name}-fails": (name, "exit 1") for name in ("bwrap", "nft", "ip")},
    **{f"{name}-is-killed": (name, "kill -9 $$") for name in ("bwrap", "nft", "ip")},
    "bwrap-does-nothing": ("bwrap", "exit 0"),
    "nft-does-nothing": ("nft", "exit 0"),  # what it should have loaded is looked for in the kernel
}


@pytest.mark.parametrize(("name", "script"), BROKEN.values(), ids=BROKEN)
def test_r147_r148_a_helper_that_fails_means_no_run_and_no_packet(
    stockade: Any, world: World, workspace: Path, broken_helper: Any, name: str, script: str
) -> None:
    run = stockade(["sh", "-c", LEAVE], APP_ONLY, extra=["--write", "."], prefix=broken_helper(name, script))
    assert run.code in (103, 104)
    assert "stockade: " in run.err
    assert not (workspace / "started").exists()
    assert world.packets() == []
    assert [record for record in run.records if record["kind"] == "attempt"] == []
    assert stockade(["sh", "-c", LEAVE], APP_ONLY, extra=["--write", "."]).code == 0
    assert (workspace / "started").exists()
    assert world.packets(address=EVIL) == []


def test_r149_the_first_connection_of_the_first_process_is_judged(contained: Do, world: World) -> None:
    """Five runs whose first act is the forbidden one; each is on record before anything else happens."""
    for _ in range(5):
        tried = contained(get(EVIL, 80), policy=APP_ONLY)
        attempts = tried.run.attempts()
        assert [(attempt["address"], attempt["verdict"]) for attempt in attempts] == [(EVIL, "deny")]
        assert tried.run.report["complete"] is True
    assert world.packets() == []


def test_a_shelf_that_is_not_there_yet_may_lie_in_the_workspace_and_is_not_seen(
    stockade: Any, world: World, workspace: Path, policy_file: Callable[[str], Path]
) -> None:
    command = [
        COMMAND,
        "run",
        "-q",
        "--write",
        ".",
        "-p",
        str(policy_file("")),
        "--ledger",
        "new",
        "--",
        "sh",
        "-c",
        "ls -A new; touch new/x",
    ]
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, timeout=15)
    assert (done.returncode, done.stdout) == (1, "")
    [folder] = (workspace / "new").iterdir()
    assert (folder / "records.jsonl").exists()


@pytest.mark.parametrize("entry", ENTRIES)
def test_r150_names_that_share_an_address_or_do_not_resolve_stop_no_start(
    contained: Do, world: World, entry: str
) -> None:
    """The same address for two names, one name twice in the list, one address twice in an answer."""
    world.set_dns({"twice.test": {"a": [APP, APP]}, "gone.test": None})
    names = ("app.test", "allowed.test", "app.test", "twice.test", "servfail.test", "gone.test", "alias.test")
    given = [
        word for name in ("fixed.test", "also.test", "fixed.test") for word in ("--resolve", f"{name}={APP}")
    ]
    steps = [get(name, entry=entry) for name in (*names, "fixed.test", "also.test", "evil.test")]
    tried = contained(*steps, policy=allow(*names, "fixed.test", "also.test"), extra=given)
    answered = [ok(answer) for answer in tried.answers]
    assert answered == [True, True, True, True, False, False, True, True, True, False]
    assert {packet["address"] for packet in world.packets()} == {APP}
    assert [denial["name"] for denial in tried.run.denials()] == ["evil.test"]
    assert {"fixed.test", "also.test"}.isdisjoint(question["name"] for question in world.dns_questions())


@pytest.mark.parametrize("entry", ENTRIES)
def test_r153_networks_of_both_families_are_held(contained: Do, world: World, entry: str) -> None:
    names = {"four.test": {"a": ["10.20.0.5"]}, "six.test": {"aaaa": ["fd00:1::5"]},
             "off.test": {"aaaa": ["fd00:2::5"]}}  # fmt: skip
    world.set_dns(names)
    policy = (
        allow(*names)
        + "internal:\n"
        + "".join(
            f"  - {{host: {name}, networks: [10.20.0.0/16, 'fd00:1::/32'], ports: [80]}}\n" for name in names
        )
    )
    policy = policy.replace("fd00:1::/32", "fd00:1::/48")
    tried = contained(*[get(name, entry=entry) for name in names], policy=policy)
    assert [ok(answer) for answer in tried.answers] == [True, True, False]
    assert {packet["address"] for packet in world.packets()} == {"10.20.0.5", "fd00:1::5"}
    assert [denial["address"] for denial in tried.run.denials()] == ["fd00:2::5"]


# --- PROCESS ---------------------------------------------------------------------------------------

# What a shell shows for each of these (POSIX.1-2017 XCU 2.8.2; 128+n for signals by every shell's habit).
ENDS = [
    ("exit 0", 0), ("exit 42", 42), ("exit 102", 102), ("exit 255", 255), ("kill -TERM $$", 143),
    ("kill -KILL $$", 137), ("kill -SEGV $$", 139), ("trap 'exit 3' TERM; kill -TERM $$", 3),
    ("exec /no-such-program", 127), ("exec /etc/passwd", 126),
]  # fmt: skip


@pytest.mark.parametrize(("script", "code"), ENDS)
def test_r119_the_run_ends_with_the_commands_own_code_and_says_whose_it_is(
    stockade: Any, world: World, script: str, code: int
) -> None:
    plain = subprocess.run(["sh", "-c", script], capture_output=True).returncode
    assert (128 - plain if plain < 0 else plain) == code
    run = stockade(["sh", "-c", script], APP_ONLY)
    assert run.code == code
    assert (run.report["exit_code"], run.report["exit_of"]) == (code, "command")
    assert run.records[-1]["kind"] == "run.closed"


def test_r119_a_program_that_cannot_be_started_is_the_commands_failure_as_in_a_shell(
    stockade: Any, world: World
) -> None:
    missing = stockade(["no-such-program"], APP_ONLY, extra=["-q"])
    assert (missing.code, missing.err) == (
        127,
        "stockade: cannot start no-such-program: No such file or directory\n",
    )
    wrong = stockade(["/etc/passwd"], APP_ONLY)
    assert (wrong.code, wrong.err.splitlines()) == (
        126,
        [
            "stockade: cannot start /etc/passwd: Permission denied",
            "hint: it is not marked as executable: chmod +x /etc/passwd",
        ],
    )


BEAT = "while :; do curl -s -m 2 http://app.test/beat >/dev/null; done"
DAEMONS = f"for n in 1 2 3; do setsid sh -c '({BEAT}) &'; done"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_r114_daemons_of_the_worker_end_with_the_run_and_ask_for_nothing_more(
    stockade: Any, world: World, signum: int
) -> None:
    worker = stockade.start(["sh", "-c", f"{DAEMONS}; echo up; sleep 60"], APP_ONLY)
    assert worker.stdout.readline() == b"up\n"
    while len(world.requests()) < 3:
        assert worker.poll() is None
    worker.send_signal(signum)
    worker.stdout.read()  # the end of the file: every process that held the other end is gone
    worker.wait(timeout=10)
    world.reset()
    assert stockade(["curl", "-s", "http://app.test/after"], APP_ONLY).code == 0
    assert [request["path"] for request in world.requests()] == ["/after"]


def test_r118_r121_ctrl_c_reaches_the_command_first_and_the_run_is_closed_in_order(
    stockade: Any, world: World, workspace: Path, policy_file: Any, tmp_path: Path
) -> None:
    """In a terminal of its own: one that the command takes, then one that ends it, then the summary."""
    master, slave = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    script = "trap 'trap - INT; echo kept' INT; echo ready; while :; do sleep 0.05; done"
    shelf = tmp_path / "shelf"
    command = [COMMAND, "run", "-p", str(policy_file(APP_ONLY)), "--ledger", str(shelf), "--"]
    tool = subprocess.Popen(
        [*command, "sh", "-c", script], stdin=slave, stdout=slave, stderr=slave,
        cwd=workspace, preexec_fn=take_terminal,
    )  # fmt: skip
    seen = b""
    for expected in (b"ready", b"kept"):
        while expected not in seen:
            seen += os.read(master, 4096)
        os.write(master, b"\x03")
    os.close(slave)
    with contextlib.suppress(OSError):  # EIO: nobody has the terminal open any more
        while os.read(master, 4096):
            pass
    os.close(master)
    assert tool.wait(timeout=10) == 128 + signal.SIGINT
    last = stockade.read_ledger(shelf)[-1]
    assert (last["kind"], last["exit_code"], last["complete"]) == ("run.closed", 130, True)


def test_r122_a_reader_of_an_idle_pipe_waits_as_it_would_plainly_and_a_time_limit_ends_all(
    stockade: Any, world: World, policy_file: Callable[[str], Path]
) -> None:
    """Input is passed on, not replaced: `timeout` outside does for the run what it does for the command."""
    read_end, write_end = os.pipe()
    limited = ["timeout", "-k", "3", "1"]
    plain = subprocess.run([*limited, "cat"], stdin=read_end, timeout=10).returncode
    command = [
        *limited,
        COMMAND,
        "run",
        "-q",
        "-p",
        str(policy_file("")),
        "--ledger",
        str(stockade.ledger),
        "--",
        "sh",
        "-c",
        "cat; echo late",
    ]
    done = subprocess.run(command, stdin=read_end, capture_output=True, timeout=10)
    os.close(write_end)
    os.close(read_end)
    assert done.returncode == plain == 124
    assert done.stdout == b""
    empty = subprocess.run(
        [COMMAND, "run", "-q", "--ledger", str(stockade.ledger), "--", "cat"],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=10,
    )  # fmt: skip
    assert (empty.returncode, empty.stdout) == (0, b"")


# --- LOG -------------------------------------------------------------------------------------------

SECRET = "hunter2hunter2"


@pytest.mark.parametrize("length", [1, 40], ids=["short", "long"])
def test_r164_a_password_in_a_url_is_in_no_record_summary_report_or_refusal(
    contained: Do, world: World, length: int
) -> None:
    user = f"alice:{SECRET * length}@"
    tried = contained(
        get("app.test", entry="http-proxy", target=f"http://{user}evil.test/", host_header="evil.test"),
        get("app.test", entry="http-proxy", target=f"http://{user}app.test/x?key={SECRET}"),
        get("app.test", entry="http-proxy", tunnel=True, authority=f"{user}app.test:443"),
        get("app.test", host_header=f"{user}app.test"),
        get("app.test", path=f"/?access_token={SECRET}"),
        policy=APP_ONLY,
    )
    assert ok(tried[-1])
    assert SECRET in str(world.requests())  # the destination of a permitted request gets what was sent
    assert len(tried.run.denials()) == 4
    assert SECRET not in str(tried.answers)
    assert SECRET not in tried.run.err
    kept = [record for record in tried.run.records if record["kind"] != "run.opened"]  # argv: the steps above
    assert SECRET not in json.dumps(kept)
    assert SECRET not in json.dumps({**tried.run.report, "argv": []})
