"""What /proc, /dev and signals give of the host: nothing; and what ordinary programs read stays there."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from kernel_steps import ORDINARY, PYTHON, Contained

# What container runtimes mask or make read-only: moby's daemon/pkg/oci/defaults.go of 2025, with
# /proc/interrupts (moby/moby#49560). Of our own: key-users, kallsyms, cmdline.
MASKED = (
    *("acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "timer_list", "timer_stats"),
    *("sched_debug", "scsi", "bus", "fs", "irq", "sysrq-trigger"),
    *("key-users", "kallsyms", "cmdline"),
)

LOOK = """
import os, sys
for name in sys.argv[1:]:
    path = "/proc/" + name
    try:
        told = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(100)
    except OSError:
        told = ""
    print(name, bool(told))
"""


def test_what_tells_of_the_machine_tells_nothing_inside(contained: Contained) -> None:
    inside = contained.python(LOOK, *MASKED).out.split()
    assert inside == [word for name in MASKED for word in (name, "False")]
    # The control: outside, the same program is told something by what every kernel has.
    outside = contained.plainly(LOOK, "cmdline", "interrupts", "kallsyms", "bus", "irq").out.split()
    assert outside.count("True") >= 3, outside


WRITABLE = """
import os
for base, folders, files in os.walk("/proc"):
    if base == "/proc":
        folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
    for name in files:
        try:
            os.close(os.open(os.path.join(base, name), os.O_WRONLY))
            print(os.path.join(base, name))
        except OSError:
            pass
for base in ("/proc", "/proc/sys", "/proc/bus", "/proc/acpi"):
    try:
        os.close(os.open(base + "/new", os.O_WRONLY | os.O_CREAT))
        print("made", base + "/new")
    except OSError:
        pass
try:
    os.close(os.open("/proc/self/comm", os.O_WRONLY))
    print("own")
except OSError:
    pass
"""


@pytest.mark.parametrize(
    "prefix", [(), (*ORDINARY, "unshare", "-Ur")], ids=["plain", "root of a user namespace"]
)
def test_nothing_of_proc_can_be_written_without_landlock_only_the_own_processes(
    contained: Contained, prefix: tuple[str, ...]
) -> None:
    # Also what the kernel counts as the worker's own: the settings of its IPC and PID namespaces.
    contained.work.parent.chmod(0o755)
    assert contained.python(WRITABLE, prefix=prefix).out == ""
    alone = ("--without-layer", "landlock")
    assert contained.python(WRITABLE, prefix=prefix, options=alone).out == "own\n"


READ = '''
import os
for path in """
cpuinfo meminfo stat loadavg uptime version filesystems vmstat mounts net/dev pressure/cpu thread-self/stat
self/status self/maps self/fdinfo/0 self/cgroup self/mountinfo self/limits
sys/kernel/hostname sys/kernel/osrelease sys/kernel/random/uuid sys/kernel/cap_last_cap sys/kernel/pid_max
sys/vm/overcommit_memory sys/fs/file-max sys/net/core/somaxconn
""".split():
    if not open("/proc/" + path).read():
        print("empty", path)
print(open("/proc/sys/kernel/hostname").read(), end="")
print(sorted(os.listdir("/proc/sys/net/ipv4/conf")))
'''


def test_what_programs_read_of_proc_is_there_and_of_the_sandbox(contained: Contained) -> None:
    result = contained.python(READ)
    # The host's settings are bound, and yet show the reader's own namespaces.
    assert result.out == "stockade\n['all', 'default', 'lo']\n", result.err


@pytest.mark.needs("node", "git")
def test_programs_that_ask_the_machine_how_large_it_is_work_without_sys(contained: Contained) -> None:
    count = str(len(os.sched_getaffinity(0)))
    script = (
        "nproc; python3 -c 'import os; print(len(os.sched_getaffinity(0)))'; ps -e | wc -l; free >/dev/null;"
        "node -e 'process.stdout.write(String(os.availableParallelism()))'; uptime >/dev/null; ls /sys 2>&1"
    )
    shown = contained("sh", "-c", script).out
    assert shown.startswith(f"{count}\n{count}\n")
    assert shown.endswith(f"\n{count}ls: cannot access '/sys': No such file or directory\n")


# --- devices -----------------------------------------------------------------------------------

NODES = """
import os, stat
found = []
for base, folders, files in os.walk("/", onerror=lambda error: None):
    folders[:] = [name for name in folders if os.path.join(base, name) not in ("/proc", "/usr")]
    for name in files:
        mode = os.lstat(os.path.join(base, name)).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            found.append(os.path.join(base, name))
print(*sorted(found))
"""


def test_the_devices_are_those_that_hold_nothing(contained: Contained) -> None:
    harmless = [f"/dev/{name}" for name in ("full", "null", "random", "tty", "urandom", "zero")]
    assert contained.python(NODES).out.split() == sorted([*harmless, "/dev/pts/ptmx"])


MAKE_NODES = """
import os, stat, sys
def tries(place):
    yield "null", lambda: os.mknod(place + "/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    yield "mem", lambda: os.mknod(place + "/mem", stat.S_IFCHR | 0o666, os.makedev(1, 1))
    yield "disk", lambda: os.mknod(place + "/disk", stat.S_IFBLK | 0o666, os.makedev(8, 0))
    yield "fifo", lambda: os.mknod(place + "/fifo", stat.S_IFIFO | 0o666)
for place in sys.argv[1:]:
    for name, action in tries(place):
        try:
            action()
            print(name, "made")
        except OSError as error:
            print(name, error.errno)
"""


def test_no_device_can_be_made_anywhere(contained: Contained) -> None:
    places = ("/tmp", "/dev/shm", "/dev", str(contained.work))
    result = contained.python(MAKE_NODES, *places, options=("--write", str(contained.work)))
    said = result.out.splitlines()
    assert len(said) == 16
    assert [line for line in said if line.startswith("fifo")] == ["fifo made"] * 2 + ["fifo 30", "fifo made"]
    assert said.count("fifo made") == len([line for line in said if line.endswith("made")])


@pytest.mark.needs("root")
def test_a_device_that_lies_in_the_workspace_cannot_be_opened(contained: Contained) -> None:
    # Made by root for a chroot, say. Binds are put up without devices.
    read = "import os; print(os.read(os.open('zero', os.O_RDONLY), 1))"
    script = (
        'mount -t tmpfs -o dev t "$PWD" && cd "$PWD" && mknod -m 666 zero c 1 5 &&'
        f'{PYTHON} -I -c "{read}" && exec "$@"'
    )
    result = contained.python(read, prefix=("unshare", "-m", "sh", "-c", script, "sh"))
    assert result.out == "b'\\x00'\n"  # the control: outside, in the same folder
    assert "PermissionError" in result.err
    assert contained.python(read.replace("zero", "/dev/zero")).out == "b'\\x00'\n"


# --- processes and signals -----------------------------------------------------------------------

KILL = """
import os, signal, sys
for pid in map(int, sys.argv[1:]):
    try:
        os.kill(pid, signal.SIGTERM)
        print("killed", pid)
    except OSError as error:
        print("no", error.errno)
"""


def test_signals_reach_nobody_outside(contained: Contained) -> None:
    victim = subprocess.Popen(["sleep", "60"])
    try:
        # Its number, its negative (the group), and whoever has that number inside: nobody.
        assert contained.python(KILL, str(victim.pid), str(-victim.pid)).out == "no 3\nno 3\n"
        shown = contained("sh", "-c", f"ls -d /proc/{victim.pid} 2>&1").out
        assert "No such file" in shown
        assert victim.poll() is None
        contained.plainly(KILL, str(victim.pid))
        assert victim.wait(timeout=5) == -signal.SIGTERM
    finally:
        victim.kill()
        victim.wait()


KILL_ALL = """
import os, signal, subprocess, time
child = subprocess.Popen(["sleep", "60"])
os.kill(-1, signal.SIGTERM)
print("child", child.wait())
for number in range(1, 65):
    if number not in (signal.SIGCONT, signal.SIGCHLD):
        try:
            os.kill(1, number)
        except OSError:
            pass
print("still here", flush=True)
"""


def test_kill_all_ends_what_is_inside_and_the_first_process_goes_on(contained: Contained) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    began = time.monotonic()
    result = contained.python(KILL_ALL)
    assert result.out == f"child -{int(signal.SIGTERM)}\nstill here\n"
    assert result.code == 0  # reported by PID 1, which is there to report
    assert time.monotonic() - began < 15
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()
