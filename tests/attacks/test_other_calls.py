"""System calls and sockets that lead round the seal: refused, each with a record that names it and its layer.

The same tries are made three times. In a user namespace of one's own without anything of ours all are
done, so they are real. Contained, none is, and each has its record. With the layer given up
inside, all are done that need no rights: so it was the layer, and not the lack of rights.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from doubles.foreign_program import foreign_program

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("userns", "bwrap", "room"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the words of the records below are x86-64's"),
]

PYTHON = "/usr/bin/python3"
LISTED = "exec: {allow: [python3]}\n"
NOT_THE_EYE = ("seccomp", "notify")
EPERM, ENOSYS, ENOTTY, EPROTONOSUPPORT, EAFNOSUPPORT = 1, 38, 25, 93, 97

# try -> (errno of the refusal, what its record calls it, the door of the record); None: refused in silence
REFUSED = {
    "unshare-user": (EPERM, "unshare(CLONE_NEWUSER)", "exec"),
    "unshare-mounts": (EPERM, "unshare(CLONE_NEWNS)", "exec"),
    "clone-user": (EPERM, "clone(CLONE_NEWUSER)", "exec"),
    "clone3": (ENOSYS, None, ""),
    "clone3-user": (ENOSYS, None, ""),
    "join": (EPERM, "setns", "exec"),
    "mount-tmpfs": (EPERM, "mount", "exec"),
    "mount-binfmt": (EPERM, "mount", "exec"),
    "new-mount-calls": (EPERM, "fsopen", "exec"),
    "chroot": (EPERM, "chroot", "exec"),
    "bpf": (EPERM, "bpf", "exec"),
    "perf": (EPERM, "perf_event_open", "exec"),
    "keyctl": (ENOSYS, "keyctl", "exec"),
    "userfaultfd": (EPERM, "userfaultfd", "exec"),
    "io-uring": (ENOSYS, "io_uring_setup", "exec"),
    "ptrace": (EPERM, "ptrace(PTRACE_ATTACH, ", "exec"),
    "read-memory": (EPERM, "process_vm_readv(", "exec"),
    "write-memory": (EPERM, "process_vm_writev(", "exec"),
    "take-descriptor": (EPERM, "pidfd_getfd", "exec"),
    "push": (EPERM, "ioctl(TIOCSTI)", "exec"),
    "push-high": (EPERM, "ioctl(TIOCSTI+0x100000000)", "exec"),
    "push-console": (EPERM, "ioctl(TIOCLINUX)", "exec"),
    "push-console-high": (EPERM, "ioctl(TIOCLINUX+0x100000000)", "exec"),
    "chmod": (EPERM, "chmod(0o4755)", "exec"),
    "fchmod": (EPERM, "fchmod(0o2755)", "exec"),
    "open": (EPERM, "openat(0o4755)", "exec"),
    "mknod": (EPERM, "mknodat(0o104755)", "exec"),
    "raw": (EPROTONOSUPPORT, "socket(AF_INET, SOCK_RAW, 1)", "socket"),
    "raw6": (EPROTONOSUPPORT, "socket(AF_INET6, SOCK_RAW, 58)", "socket"),
    "packet": (EAFNOSUPPORT, "socket(AF_PACKET, SOCK_RAW, 768)", "socket"),
    "netlink-diagnosis": (EPROTONOSUPPORT, "socket(AF_NETLINK, SOCK_RAW, 4)", "socket"),
    "netlink-audit-high": (EPROTONOSUPPORT, "socket(AF_NETLINK, SOCK_RAW, 9+0x100000000)", "socket"),
    "vsock": (EAFNOSUPPORT, "socket(AF_VSOCK, SOCK_STREAM, 0)", "socket"),
    "vsock-high": (EAFNOSUPPORT, "socket(AF_VSOCK+0x100000000, SOCK_STREAM, 0)", "socket"),
    "mptcp": (EPROTONOSUPPORT, "socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP)", "socket"),
    "udp-lite": (EPROTONOSUPPORT, "socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE)", "socket"),
    "unix": (EAFNOSUPPORT, "socket(AF_UNIX, SOCK_STREAM, 0)", "socket"),
    "unix-datagram": (EAFNOSUPPORT, "socket(AF_UNIX, SOCK_DGRAM, 0)", "socket"),
    "unix-high": (EAFNOSUPPORT, "socket(AF_UNIX+0x100000000, SOCK_STREAM, 0)", "socket"),
    "x32": (ENOSYS, "number 39 by the x32 convention", "exec"),
}
DONE_INSIDE = {"tcp", "udp6", "netlink-route", "pair"}
# Ways off the machine, of any bytes to anybody; the others ask for a part of the machine.
LEADS_OUT = {"raw", "raw6", "mptcp", "udp-lite"}
CONTROL_SOCKETS = {"unix", "unix-datagram", "unix-high"}

# What the kernel says itself where nothing of ours is: there is no console, and this kernel has no x32.
BY_THE_KERNEL = {"push-console": ENOTTY, "push-console-high": ENOTTY, "x32": ENOSYS}
# What takes a right inside, which the worker lacks with and without the layer.
TAKES_A_RIGHT = {
    "unshare-user", "unshare-mounts", "clone-user", "clone3-user", "join", "mount-tmpfs", "mount-binfmt",
    "new-mount-calls", "chroot", "bpf", "raw", "raw6", "packet",
}  # fmt: skip

Payload = Callable[..., Any]


def not_done(answers: dict[str, Any]) -> dict[str, int]:
    """Tries that were refused, with the errno."""
    refused = {name: said for name, (said, _pid) in answers.items() if said != "done"}
    return {name: int(said.split(":")[0].removeprefix("errno ")) for name, said in refused.items()}


def test_each_try_is_real_where_nothing_forbids_it(plainly: Payload) -> None:
    answers = plainly("calls.py", prefix=("unshare", "-Urmn"))
    assert not_done(answers) == BY_THE_KERNEL | {"bpf": EPERM}  # that takes a right on the machine


@pytest.mark.needs("root")
def test_the_try_with_bpf_is_real_for_root(plainly: Payload) -> None:
    answers = plainly("calls.py", prefix=("unshare", "-mn"))
    assert not_done(answers) == BY_THE_KERNEL


def test_r125_r126_r130_r131_r132_no_try_is_done_inside_and_each_is_on_record(payload: Payload) -> None:
    answers, run = payload("calls.py", LISTED)
    assert not_done(answers) == {name: number for name, (number, _call, _entry) in REFUSED.items()}
    assert set(answers) == set(REFUSED) | DONE_INSIDE
    records = {record["pid"]: record for record in run.denials(entry="exec") + run.denials(entry="socket")}
    for name, (_number, call, entry) in REFUSED.items():
        if call is None:
            assert answers[name][1] not in records
            continue
        record = records.pop(answers[name][1])
        assert record["call"].startswith(call), name  # behind it stands the id of a child, if anything
        assert (record["layer"], record["entry"]) == ("seccomp", entry), name
        assert record["risk"] == ("exfiltration" if name in LEADS_OUT else "boundary-tampering")
        assert record["program"] == os.path.realpath(PYTHON)
        assert record["control"] == (
            "no-control-sockets" if name in CONTROL_SOCKETS else "namespace-isolation"
        )
    assert records == {}


def test_with_the_layer_given_up_all_is_done_that_takes_no_right(payload: Payload) -> None:
    answers, run = payload("calls.py", LISTED, *NOT_THE_EYE)
    assert set(not_done(answers)) == TAKES_A_RIGHT | set(BY_THE_KERNEL)
    assert run.denials(entry="exec") == run.denials(entry="socket") == []


def test_at_mode_any_the_calls_stay_refused(payload: Payload) -> None:
    """What no list of programs is about: the room, other processes, the kernel, the host's files."""
    answers, _run = payload("calls.py", "exec: {mode: any}\n")
    assert set(not_done(answers)) == set(REFUSED)


def test_unix_sockets_come_with_the_policy_s_word_and_nothing_else_does(payload: Payload) -> None:
    answers, _run = payload("calls.py", "exec: {allow: [python3], unix-sockets: true}\n")
    assert set(not_done(answers)) == set(REFUSED) - CONTROL_SOCKETS


# --- programs started by another calling convention --------------------------------------------

FOREIGN = "exec: {allow: [python3, ./foreign]}\n"
START = """
import subprocess
done = subprocess.run(["./foreign"], capture_output=True)
print("ran" if b"uid=" in done.stdout else done.returncode)
"""


@pytest.fixture
def start_by(stockade: Payload, workspace: Path) -> Payload:
    """What came of a listed program that starts `id` by a convention: "ran", or the errno; and the run."""

    def start(convention: str, policy: str, *layers_off: str) -> tuple[str, Any]:
        (workspace / "foreign").write_bytes(foreign_program(convention))
        (workspace / "foreign").chmod(0o755)
        run = stockade([PYTHON, "-c", START], policy, extra=[f"--without-layer={n}" for n in layers_off])
        return run.out.strip(), run

    return start


@pytest.mark.parametrize(
    ("convention", "call"),
    [
        ("int80", "number 11 of another architecture (0x40000003)"),
        ("x32", "number 520 by the x32 convention"),
    ],
)
def test_r126_a_program_is_not_started_by_another_convention(
    start_by: Payload, convention: str, call: str
) -> None:
    said, run = start_by(convention, FOREIGN)
    assert said == str(ENOSYS)
    (record,) = run.denials(call=call, entry="exec")
    assert record["layer"] == "seccomp"
    assert record["program"].endswith("/foreign")
    assert run.denials(file="/usr/bin/id", entry="exec") == []


def test_the_same_program_by_the_machine_s_own_convention_is_judged_as_a_command(start_by: Payload) -> None:
    said, run = start_by("native", FOREIGN)
    assert said == "13"  # EACCES
    (record,) = run.denials(file="/usr/bin/id", entry="exec")
    assert (record["layer"], record["program"]) == ("notify", "/usr/bin/id")
    assert start_by("native", "exec: {mode: any}\n")[0] == "ran"


def test_r126_a_32_bit_start_is_real_without_the_filter_and_meets_the_other_layers(start_by: Payload) -> None:
    said, _run = start_by("int80", "exec: {mode: any}\n", "seccomp", "memfd", "notify")
    if said == str(ENOSYS):
        pytest.skip("this kernel has no 32-bit calls")
    assert said == "ran"
    assert start_by("int80", FOREIGN, "seccomp", "memfd", "notify")[0] == "13"
    assert start_by("int80", FOREIGN, "seccomp", "memfd", "notify", "mounts")[0] == "13"
    assert start_by("int80", FOREIGN, "seccomp", "memfd", "notify", "mounts", "landlock")[0] == "ran"
    assert start_by("int80", FOREIGN, "seccomp", "memfd", "mounts", "landlock")[0] == str(ENOSYS)


# --- a Unix socket of the host that appears while the worker runs ----------------------------------

DIAL = """
import socket, sys
print("ready", flush=True)
sys.stdin.readline()
try:
    line = socket.socket(socket.AF_UNIX)
    line.connect("late.sock")
    print(line.recv(9).decode())
except OSError as error:
    print("errno", error.errno)
"""


@pytest.fixture
def dial(stockade: Payload, workspace: Path) -> Payload:
    """A worker that dials a socket which a host process opened in its workspace after the start."""

    def run(policy: str, *extra: str) -> tuple[str, Any]:
        worker = stockade.start([PYTHON, "-c", DIAL], policy, extra=list(extra))
        assert worker.stdout.readline() == b"ready\n"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(workspace / "late.sock"))
            (workspace / "late.sock").chmod(0o777)
            server.listen()
            server.settimeout(0)
            worker.stdin.write(b"now\n")
            worker.stdin.flush()
            said = ""
            while not said:
                with contextlib.suppress(BlockingIOError):
                    server.accept()[0].sendall(b"from host")
                if select.select([worker.stdout], [], [], 0.02)[0]:
                    said = worker.stdout.readline().decode().strip()
        out, err = worker.communicate(timeout=15)
        return said, stockade.finish(worker, out, err)

    return run


def test_r123_a_socket_of_the_host_that_appears_later_is_not_dialled_and_the_try_is_on_record(
    dial: Payload,
) -> None:
    said, run = dial(LISTED)
    assert said == f"errno {EAFNOSUPPORT}"
    (record,) = run.denials(entry="socket")
    assert (record["call"], record["layer"]) == ("socket(AF_UNIX, SOCK_STREAM, 0)", "seccomp")
    assert record["reason"] == "control-socket"


@pytest.mark.parametrize("extra", [(), ("--write", ".")], ids=["read-only", "writable"])
def test_the_rest_risk_with_unix_sockets_a_socket_that_appears_in_the_view_answers(
    dial: Payload, extra: tuple[str, ...]
) -> None:
    """Written down in docs/concepts/seal.md: no other layer judges a connect, read-only or not."""
    said, run = dial("exec: {allow: [python3], unix-sockets: true}\n", *extra)
    assert said == "from host"
    assert run.denials(entry="socket") == []


LISTEN = """
import os, socket, sys
for folder in (sys.argv[1], "/tmp", os.environ["HOME"]):
    try:
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"{folder}/own.sock")
        server.listen()
        socket.socket(socket.AF_UNIX).connect(f"{folder}/own.sock")
        print("served")
    except OSError as error:
        print("errno", error.errno)
"""


def test_f6_no_socket_is_left_where_a_process_of_the_host_would_find_it(
    stockade: Payload, workspace: Path
) -> None:
    policy, writable = "exec: {allow: [python3], unix-sockets: true}\n", ["--write", "."]
    run = stockade([PYTHON, "-c", LISTEN, str(workspace)], policy, extra=writable)
    assert run.out.splitlines() == ["errno 13", "served", "served"]
    assert not (workspace / "own.sock").exists()
    without = stockade(
        [PYTHON, "-c", LISTEN, str(workspace)], policy, extra=[*writable, "--without-layer=landlock"]
    )
    assert without.out.splitlines() == ["served"] * 3
    assert "own.sock" in str(without.report["left_behind"])
