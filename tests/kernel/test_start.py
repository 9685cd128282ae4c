"""Nothing of the worker runs before all is in place, and nothing stays when we die (F2, F8, F9)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_steps import IS_ROOT, ORDINARY, PYTHON, Contained

from stockade.sandbox.trial import Trial, run_trials

MARK_LOOP = "import time, os\nfor n in range(600):\n    open('mark', 'w').write(str(n)); time.sleep(0.05)\n"


# --- something is missing (R147, R148) -------------------------------------------------------


def hide_program(name: str) -> tuple[str, ...]:
    """A prefix that makes a system program unexecutable in a mount namespace of the command's own."""
    flags = "-m" if IS_ROOT else "-Urm"
    script = 'for f in /usr/bin/$0 /usr/sbin/$0; do [ ! -e $f ] || mount --bind /dev/null $f; done; exec "$@"'
    return ("unshare", flags, "sh", "-c", script, name)


@pytest.mark.parametrize(
    ("name", "package"), [("bwrap", "bubblewrap"), ("nft", "nftables"), ("ip", "iproute2")]
)
def test_r147_a_missing_helper_is_named_and_nothing_starts(
    contained: Contained, name: str, package: str
) -> None:
    result = contained(
        "touch", "started", options=("--write", str(contained.work)), prefix=hide_program(name)
    )
    assert result.code == 103
    assert f"{name}-missing" in result.err
    assert package in result.err
    assert not (contained.work / "started").exists()
    # The control: with all helpers there the same command runs.
    assert contained("touch", "started", options=("--write", str(contained.work))).code == 0
    assert (contained.work / "started").exists()


@pytest.mark.parametrize("name", ["bwrap", "nft", "ip"])
def test_r147_r148_a_helper_that_fails_stops_the_start(contained: Contained, name: str) -> None:
    folder = contained.work.parent / "bin"
    folder.mkdir()
    (folder / name).write_text("#!/bin/sh\necho 'broken on purpose' >&2\nexit 1\n")
    (folder / name).chmod(0o755)
    os.chmod(contained.work.parent, 0o755)
    result = contained(
        "touch",
        "started",
        options=("--write", str(contained.work)),
        environment={"PATH": f"{folder}:{os.environ['PATH']}"},
    )
    assert result.code == 103
    assert "broken on purpose" in result.err
    assert not (contained.work / "started").exists()


def test_r148_rules_that_the_kernel_refuses_stop_the_start(contained: Contained) -> None:
    # nft that loads half of the rules and then fails: the room is not used.
    folder = contained.work.parent / "bin"
    folder.mkdir()
    half = "#!/bin/sh\nsed '/tproxy/d' | /usr/sbin/nft -f - && echo 'No such file or directory' >&2; exit 1\n"
    (folder / "nft").write_text(half)
    (folder / "nft").chmod(0o755)
    os.chmod(contained.work.parent, 0o755)
    path = f"{folder}:{os.environ['PATH']}"
    result = contained(
        "touch", "started", options=("--write", str(contained.work)), environment={"PATH": path}
    )
    assert result.code == 103
    assert "step nft" in result.err
    assert "CONFIG_NFT_TPROXY" in result.err
    assert not (contained.work / "started").exists()


@pytest.mark.parametrize(
    ("stub", "missing"),
    [
        ("exit 0", "0.0.0.0/0, 198.18.0.1/32, ::/0, fdfe::1/128"),
        ("grep -v : | {ip} -batch -", "::/0, fdfe::1/128"),
        ("grep : | {ip} -batch -", "0.0.0.0/0, 198.18.0.1/32"),
        ("grep -v default | {ip} -batch -", "0.0.0.0/0"),
        ("sed 's/local default/default/' | {ip} -batch -", "0.0.0.0/0"),
        ("exec {ip} -batch -", ""),  # the control
    ],
)
def test_r148_an_ip_that_only_says_that_it_worked_stops_the_start(
    contained: Contained, stub: str, missing: str
) -> None:
    # Without routes each attempt fails before it is counted, and the record would be called complete.
    folder = contained.work.parent / "bin"
    folder.mkdir()
    (folder / "ip").write_text("#!/bin/sh\n" + stub.format(ip=shutil.which("ip")) + "\n")
    (folder / "ip").chmod(0o755)
    os.chmod(contained.work.parent, 0o755)
    result = contained(
        "touch",
        "started",
        options=("--write", str(contained.work)),
        environment={"PATH": f"{folder}:{os.environ['PATH']}"},
    )
    assert (contained.work / "started").exists() == (missing == "")
    assert result.code == (104 if missing else 0), result.err
    if missing:
        assert "room-failed" in result.err
        assert f"lacks the local routes {missing}\n" in result.err
        assert f"hint: see what {folder}/ip is" in result.err


def test_a_bubblewrap_that_is_too_old_is_named_so(contained: Contained) -> None:
    folder = contained.work.parent / "bin"
    folder.mkdir()
    old = "#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2\nexit 1\n"  # what 0.6 says
    (folder / "bwrap").write_text(old)
    (folder / "bwrap").chmod(0o755)
    os.chmod(contained.work.parent, 0o755)
    result = contained("true", environment={"PATH": f"{folder}:{os.environ['PATH']}"})
    assert result.code == 103
    assert "bwrap-too-old" in result.err
    assert "0.8" in result.err


def test_f9_without_user_namespaces_the_start_is_refused(contained: Contained) -> None:
    # In a user namespace of its own whose limit is 0; bwrap with --unshare-all alone would go on.
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    prefix = (*ORDINARY, "unshare", "-Ur", "sh", "-c", script, "sh")
    contained.work.parent.chmod(0o755)
    result = contained("touch", "started", options=("--write", str(contained.work)), prefix=prefix)
    assert result.code == 103
    assert "userns-forbidden" in result.err
    assert "max_user_namespaces" in result.err
    assert not (contained.work / "started").exists()


def test_r128_works_inside_a_user_namespace_of_another(contained: Contained) -> None:
    contained.work.parent.chmod(0o755)
    assert contained("echo", "ran", prefix=(*ORDINARY, "unshare", "-Ur")).out == "ran\n"


@pytest.mark.needs("root")
def test_f1_root_that_can_be_nobody_else_is_refused(contained: Contained) -> None:
    # Root of a user namespace that maps only itself is an ordinary user outside, unless root made it.
    refused = contained(
        "touch", "started", prefix=("unshare", "-Ur"), options=("--write", str(contained.work))
    )
    assert refused.code == 103
    assert "root-not-given-up" in refused.err
    assert not (contained.work / "started").exists()
    # What it would be: the owner of the kernel's settings.
    opened = subprocess.run(["unshare", "-Ur", "test", "-w", "/proc/sys/kernel/core_pattern"])
    assert opened.returncode == 0


def test_r139_a_nested_start_is_refused_and_no_variable_opens_anything(contained: Contained) -> None:
    # The nested tool sees the same programs but can make no namespace, whatever it is told.
    env = {"STOCKADE": "0", "STOCKADE_RUN": "", "STOCKADE_DISABLE": "1", "STOCKADE_UPSTREAM_PROXY": "x"}
    shown = contained("env", environment=env).out
    assert "STOCKADE=1\n" in shown
    assert "STOCKADE_DISABLE" not in shown
    nested = contained("bwrap", "--unshare-user", "--ro-bind", "/usr", "/usr", "/usr/bin/true")
    assert nested.code != 0
    assert "No permissions to create new namespace" in nested.err
    unshare = contained("unshare", "-Urn", "true")
    assert unshare.code != 0


def test_a_builder_that_dies_stops_the_start(contained: Contained) -> None:
    # nft that kills its parent, the builder, when half of the room is there.
    folder = contained.work.parent / "bin"
    folder.mkdir()
    (folder / "nft").write_text("#!/bin/sh\nkill -9 $PPID\nexec /usr/sbin/nft -f -\n")
    (folder / "nft").chmod(0o755)
    os.chmod(contained.work.parent, 0o755)
    path = f"{folder}:{os.environ['PATH']}"
    options = ("--write", str(contained.work))
    result = contained("touch", "started", options=options, environment={"PATH": path})
    assert result.code == 104
    assert "room-failed" in result.err
    assert not (contained.work / "started").exists()


def test_the_stage_s_program_cannot_be_replaced(contained: Contained) -> None:
    script = (
        "ls /.stockade; echo x > /.stockade/stage; rm -f /.stockade/stage; mv /.stockade /tmp; echo tried"
    )
    result = contained("sh", "-c", script)
    assert result.out == "stage\ntried\n"
    assert result.err.count("Read-only file system") + result.err.count("busy") == 3


# --- doctor (R154) ---------------------------------------------------------------------------


def test_r154_doctor_names_what_is_absent_what_is_lost_and_the_remedy() -> None:
    def absent() -> str:
        raise OSError(38, "Function not implemented")

    def present() -> str:
        return "fine"

    results = run_trials(
        [
            Trial("tproxy", "the room", "kernel: CONFIG_NFT_TPROXY", absent),
            Trial("nft", "the room", "install nftables", present),
            Trial("cgroup", "memory limits", "delegate one", absent, is_needed=False),
        ]
    )
    assert [(r.name, r.works, r.is_needed) for r in results] == [
        ("tproxy", False, True),
        ("nft", True, True),
        ("cgroup", False, False),
    ]
    assert (results[0].lost, results[0].remedy) == ("the room", "kernel: CONFIG_NFT_TPROXY")
    assert "Function not implemented" in results[0].detail


def test_r154_doctor_tries_and_exits_by_the_result(contained: Contained) -> None:
    doctor = [sys.executable, "-m", "stockade", "doctor"]
    works = subprocess.run(doctor, capture_output=True, text=True, timeout=18, cwd=contained.work)
    assert (works.returncode, "whole-start" in works.stdout) == (0, True), works.stdout + works.stderr
    broken = subprocess.run([*hide_program("bwrap"), *doctor], capture_output=True, text=True, timeout=18)
    assert broken.returncode == 3
    assert "install bubblewrap" in broken.stdout


# --- order (R149) ----------------------------------------------------------------------------

FIRST_INSTRUCTION = """
import socket, sys
reached = 0
for address in ("203.0.113.9", "169.254.169.254"):
    s = socket.socket(); s.settimeout(0.05)
    try:
        s.connect((address, 80)); s.settimeout(0.2)
        reached += len(s.recv(10))
    except OSError:
        pass
print(reached, "bytes")
"""


def test_r149_the_rules_are_there_before_the_first_instruction(contained: Contained) -> None:
    # Each attempt of the very first instructions is in the kernel's own count: it met the rules.
    for _ in range(5):
        result = contained.python(FIRST_INSTRUCTION)
        assert result.out.startswith("0 ")
        assert contained.facts["counters"]["syn"] == 2


def test_nothing_of_the_worker_runs_before_the_order(contained: Contained) -> None:
    # The supervisor builds everything and never gives the order: the command must not have started.
    program = """
import sys; sys.argv = ["x"]
from pathlib import Path
from stockade.reactor import Reactor
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox.supervise import Sandbox
work = Path.cwd()
request = SandboxRequest(argv=("touch", "started"), workspace=work, write=(work,))
sandbox = Sandbox(plan_sandbox(request, probe_host(request)), Reactor())
sockets = sandbox.build()
children = Path(f"/proc/{sandbox._stage_pid}/task/{sandbox._stage_pid}/children").read_text().split()
print("built", sockets.tcp4.getsockname(), children)
sandbox.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=contained.work, capture_output=True, text=True, timeout=15
    )
    assert done.stdout == "built ('0.0.0.0', 1) []\n", done.stderr
    assert not (contained.work / "started").exists()


# --- the supervisor dies (F2, R114) ----------------------------------------------------------


def survivors(needle: str) -> list[str]:
    """Processes of this machine that have `needle` in their command line."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                command = (
                    Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
            if needle in command:
                found.append(f"{entry} {command}")
    return found


def wait_until_gone(needle: str, within_s: float = 3.0) -> list[str]:
    deadline = time.monotonic() + within_s
    while (left := survivors(needle)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


# Milliseconds after the start of the build; Python's own start and the plan lie before it.
KILL_AFTER_MS = (0, 1, 2, 4, 7, 10, 15, 20, 30, 50, 90, 150)

SUICIDE = """
import os, signal, sys, threading, time
from pathlib import Path
from stockade.reactor import Reactor
from stockade.sandbox.plan import SandboxRequest, plan_sandbox
from stockade.sandbox.probe import probe_host
from stockade.sandbox import supervise, idmap, bubblewrap, console
delay_ms, needle = float(sys.argv[1]), sys.argv[2]
work = Path.cwd()
argv = ("/usr/bin/python3", "-I", "-c", sys.argv[3], needle)
request = SandboxRequest(argv=argv, workspace=work, write=(work,))
plan = plan_sandbox(request, probe_host(request))
sandbox = supervise.Sandbox(plan, Reactor())
signal.signal(signal.SIGALRM, lambda *_: None)
killer = os.fork()
if killer == 0:
    time.sleep(delay_ms / 1000); os.kill(os.getppid(), signal.SIGKILL); os._exit(0)
sandbox.build()
sandbox.go(lambda how: None)
sandbox._reactor.run()
"""


@pytest.mark.parametrize("delay_ms", KILL_AFTER_MS)
def test_f2_r114_a_supervisor_killed_at_any_moment_leaves_nothing(
    contained: Contained, delay_ms: int
) -> None:
    needle = f"needle-{os.getpid()}-{delay_ms}"
    before = leftovers()
    done = subprocess.run(
        [*MARKED, sys.executable, "-c", SUICIDE, str(delay_ms), needle, MARK_LOOP],
        cwd=contained.work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=15,
        env={**os.environ, "HOME": str(contained.home)},  # of somebody for whom nothing is held (hold.py)
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert wait_until_gone(needle) == []
    mark = contained.work / "mark"
    assert sorted(os.listdir(contained.work)) == (["mark"] if mark.exists() else [])
    assert leftovers() == before


# A group that nothing else on the machine has: what root's processes of this test make is known by it.
MARKING_GID = 54321
MARKED = ("setpriv", "--regid", str(MARKING_GID), "--keep-groups") if IS_ROOT else ()


def leftovers() -> tuple[list[str], int]:
    """What a run left in the shared folders, and the length of our own mount table."""
    kept = []
    for folder in ("/tmp", "/run", "/dev/shm", "/var/tmp"):
        for entry in os.scandir(folder):
            if entry.name.startswith(("kernel-", "pytest-")):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # somebody else's, gone meanwhile
            is_ours = status.st_gid == MARKING_GID or status.st_uid == 65533
            if is_ours if IS_ROOT else status.st_uid == os.getuid():
                kept.append(entry.path)
    return sorted(kept), len(Path("/proc/self/mounts").read_text().splitlines())


def test_f2_the_control_with_a_running_supervisor_the_worker_goes_on(contained: Contained) -> None:
    worker = contained.start(
        PYTHON, "-I", "-c", MARK_LOOP, "needle-control", options=("--write", str(contained.work))
    )
    mark = contained.work / "mark"
    deadline = time.monotonic() + 10
    while not (mark.exists() and mark.read_text() > "0") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert survivors("needle-control")
    worker.kill()
    worker.wait()
    assert wait_until_gone("needle-control") == []
    worker.communicate()


# The last command replaces the shell: dash loses an interrupt that comes just as it starts a child.
DAEMONS = """
for n in 1 2 3; do setsid sh -c 'setsid sleep 77.$0$1 & ' $n {0}; done
(sleep 77.9{0} &) ; echo started; exec sleep 60
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_r114_daemonised_children_do_not_survive(contained: Contained, signum: int) -> None:
    worker = contained.start("sh", "-c", DAEMONS.format(signum))
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"started\n"
        names = [f"sleep 77.{n}{signum}" for n in (1, 2, 3, 9)]
        deadline = time.monotonic() + 8
        while not all(survivors(name) for name in names):  # they start in the background
            assert time.monotonic() < deadline
            time.sleep(0.02)
        worker.send_signal(signum)
        worker.wait(timeout=10)
        assert [wait_until_gone(name) for name in names] == [[], [], [], []]
    finally:
        worker.kill()
        worker.communicate()


def test_r116_a_start_from_a_thread_that_ends_does_not_end_the_command(contained: Contained) -> None:
    # bwrap's --die-with-parent is bound to the thread; the command outlives it here.
    result = contained(
        "sh", "-c", "sleep 0.5; echo done > made", options=("--thread", "--write", str(contained.work))
    )
    assert result.code == 0, result.err
    assert (contained.work / "made").read_text() == "done\n"


ATTACK_PID_1 = """
import ctypes, os, signal
for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCHLD, signal.SIGHUP):
    os.kill(1, number)
for path in ("/proc/1/mem", "/proc/1/fd", "/proc/1/environ", "/proc/1/maps"):
    try:
        os.listdir(path) if path.endswith("fd") else open(path, "rb").read(1)
        print("opened", path)
    except OSError as error:
        print("refused", path)
libc = ctypes.CDLL(None, use_errno=True)
print("ptrace", libc.ptrace(16, 1, 0, 0))
print("pidfd_getfd", libc.syscall(438, libc.syscall(434, 1, 0), 3, 0))
print("own", len(os.listdir("/proc/self/fd")) > 0)
"""


def test_r132_the_stage_cannot_be_killed_stopped_or_looked_into(contained: Contained) -> None:
    result = contained.python(ATTACK_PID_1)
    assert result.code == 0
    assert "opened" not in result.out
    assert result.out.splitlines()[-3:] == ["ptrace -1", "pidfd_getfd -1", "own True"]


def test_r132_processes_of_the_host_are_not_visible(contained: Contained) -> None:
    count = contained("sh", "-c", "ls -d /proc/[0-9]* | wc -l").out
    assert int(count) <= 5
