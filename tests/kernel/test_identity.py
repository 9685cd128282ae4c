"""Who the worker is: nobody on the host, without rights, and its files keep their owner (boundary.md F1)."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from kernel_steps import IS_ROOT, Contained

OPEN_FOR_WRITING = """
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR))
        print("opened", path)
    except OSError as error:
        print("refused", path)
"""
READ = """
import os, sys
for path in sys.argv[1:]:
    try:
        print("read", len(os.listdir(path)) if os.path.isdir(path) else len(open(path).read()))
    except OSError:
        print("refused", path)
"""


def test_the_worker_has_an_unprivileged_uid_on_the_host(contained: Contained) -> None:
    # Asked of the host: /proc/PID/status of the command, seen from outside.
    worker = contained.start("sleep", "30")
    try:
        uid = uid_of_descendant(worker.pid, "sleep")
    finally:
        worker.terminate()
        worker.communicate()
    assert uid != 0
    assert uid == (65533 if IS_ROOT else os.getuid())


def uid_of_descendant(pid: int, name: str) -> int:
    for _ in range(2000):
        listing = subprocess.run(["ps", "-eo", "pid,ppid,uid,comm"], capture_output=True, text=True).stdout
        rows = [line.split(None, 3) for line in listing.splitlines()[1:]]
        family = {pid}
        for row in rows:  # ps lists parents before children where ids have not wrapped
            if int(row[1]) in family:
                family.add(int(row[0]))
        for row in rows:
            if int(row[0]) in family and row[3] == name:
                return int(row[2])
    raise AssertionError(f"{name} did not start")


@pytest.mark.needs("root")
def test_started_by_root_the_worker_cannot_read_what_only_root_can(contained: Contained) -> None:
    secrets = ["/etc/shadow", "/root", "/proc/1/environ"]
    assert contained.plainly(READ, "/etc/shadow", "/root").out.count("read") == 2
    # In the view these do not exist at all; in /proc they belong to nobody it is.
    assert "read" not in contained.python(READ, *secrets).out


def test_kernel_settings_cannot_be_opened_for_writing(contained: Contained) -> None:
    settings = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/stat_interval",
        "/proc/sys/net/ipv4/ip_unprivileged_port_start",
        "/proc/sys/net/ipv4/ping_group_range",
        "/proc/sys/net/ipv4/tcp_syncookies",
        "/proc/sysrq-trigger",
    ]
    if IS_ROOT:  # the control: root outside may, which is what the worker must not inherit
        assert contained.plainly(OPEN_FOR_WRITING, settings[0]).out.startswith("opened")
    assert contained.python(OPEN_FOR_WRITING, *settings).out.count("refused") == len(settings)
    assert contained.python(OPEN_FOR_WRITING, "/dev/null").out.startswith("opened")


def test_the_worker_has_no_capability_and_gains_none(contained: Contained) -> None:
    status = contained("cat", "/proc/self/status").out
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(lines[name], 16) == 0, name
    assert lines["NoNewPrivs"] == "1"
    assert lines["Seccomp"] == "2"


def test_r131_a_setuid_program_in_the_view_gives_no_rights(contained: Contained) -> None:
    # passwd is set-user-id root on the host; inside, its effective uid is the worker's.
    assert os.stat("/usr/bin/passwd").st_mode & stat.S_ISUID
    shown = contained.python(
        "import os; pid = os.posix_spawn('/usr/bin/su', ['su', '-c', 'id'], {}); print(os.waitpid(pid, 0)[1])"
    )
    assert "uid=0" not in shown.out


SET_BITS = """
import os, stat, sys
def tries():
    yield "chmod", lambda: os.chmod("f", 0o4755)
    yield "fchmod", lambda: os.fchmod(os.open("f", os.O_RDONLY), 0o2755)
    yield "open", lambda: os.close(os.open("g", os.O_CREAT | os.O_WRONLY, 0o4755))
    yield "mknod", lambda: os.mknod("h", stat.S_IFREG | 0o4755)
open("f", "w").close()
for name, action in tries():
    try:
        action()
        print(name, "done")
    except OSError as error:
        print(name, error.errno)
os.chmod("f", 0o755)
print("plain chmod done")
"""


def test_r131_no_setuid_file_can_be_left_in_the_workspace(contained: Contained) -> None:
    result = contained.python(SET_BITS, options=("--write", str(contained.work)))
    assert result.out.splitlines() == ["chmod 1", "fchmod 1", "open 1", "mknod 1", "plain chmod done"]
    assert not [p for p in contained.work.iterdir() if p.stat().st_mode & 0o6000]
    for path in contained.work.iterdir():
        path.unlink()
    # The control: without the filter the same program leaves such files.
    unfiltered = contained.python(
        SET_BITS, options=("--write", str(contained.work), "--without-layer", "seccomp")
    )
    assert "chmod done" in unfiltered.out
    assert (contained.work / "g").stat().st_mode & stat.S_ISUID


@pytest.mark.parametrize("folder_owner", [0, 1234])
@pytest.mark.needs("root")
def test_files_written_as_root_keep_the_owner_of_the_workspace(
    contained: Contained, folder_owner: int
) -> None:
    os.chown(contained.work, folder_owner, folder_owner)
    (contained.work / "old").write_text("old")
    os.chown(contained.work / "old", folder_owner, folder_owner)
    os.chmod(contained.work / "old", 0o600)
    result = contained("sh", "-c", "cat old; echo new > new; id -u", options=("--write", str(contained.work)))
    assert result.out == "old65533\n"
    written = (contained.work / "new").stat()
    assert (written.st_uid, written.st_gid) == (folder_owner, folder_owner)


@pytest.mark.needs("root")
def test_a_workspace_below_root_s_home_works(contained: Contained, tmp_path: Path) -> None:
    # /root is closed to the worker's uid; the way into the folder is a mount made by root.
    import tempfile

    with tempfile.TemporaryDirectory(dir="/root") as folder:
        Path(folder, "file").write_text("seen")
        assert contained("cat", "file", cwd=Path(folder)).out == "seen"
        assert contained("ls", "/root/.ssh", cwd=Path(folder)).code != 0


@pytest.mark.needs("root")
def test_without_id_mapped_mounts_a_start_by_root_is_refused(contained: Contained, work: Path) -> None:
    # overlayfs has no id-mapped mounts; the folder is mounted in a namespace that ends with the test.
    for name in ("lower", "upper", "scratch", "merged"):
        (work.parent / name).mkdir()
    base = work.parent
    layers = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/scratch"
    mount = f"mount -t overlay o -o {layers} {base}/merged"
    script = f'{mount} && cd {base}/merged && export PWD={base}/merged && exec "$@"'
    prefix = ("unshare", "-m", "sh", "-c", script, "sh")
    refused = contained("touch", "started", prefix=prefix)
    assert refused.code == 103
    assert "idmap-unsupported" in refused.err
    assert str(base / "merged") in refused.err
    assert not (base / "upper" / "started").exists()
