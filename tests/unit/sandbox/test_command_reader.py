"""What a waiting execve is about, read from a process that lies, loops or is gone; here of this process."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from stockade.sandbox import command_reader, kernel
from stockade.sandbox.command_reader import (
    ARGUMENTS_LIMIT,
    Memory,
    open_target,
    read_command,
)
from stockade.sandbox.eye import Sighting
from stockade.sandbox.processes import read_children

AT_FDCWD = -100
HERE = os.getpid()


def identity(path: str | Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def target(path: str | bytes, folder: int = AT_FDCWD) -> tuple[int, int]:
    fd = open_target(HERE, folder, os.fsencode(path))
    try:
        return os.fstat(fd).st_dev, os.fstat(fd).st_ino
    finally:
        os.close(fd)


# --- paths -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/bin/sh",
        "/usr/../bin/./sh",
        "//bin//sh",
        "/proc/self/root/bin/sh",
        "/proc/thread-self/root/bin/sh",
        "/proc/self/task/../root/proc/self/root/bin/sh",
        "/dev/../bin/sh",
    ],
)
def test_every_road_to_a_file_is_that_file(path: str) -> None:
    assert target(path) == identity("/bin/sh")


def test_proc_self_is_the_one_who_asks_and_not_us() -> None:
    child = subprocess.Popen(["sleep", "30"], stdout=subprocess.DEVNULL)
    try:
        fd = open_target(child.pid, AT_FDCWD, b"/proc/self/exe")
        assert (os.fstat(fd).st_dev, os.fstat(fd).st_ino) == identity(f"/proc/{child.pid}/exe")
        assert os.fstat(fd).st_ino != os.stat("/proc/self/exe").st_ino
        os.close(fd)
    finally:
        child.kill()
        child.wait()


def test_proc_self_in_a_pid_namespace_of_its_own_is_the_one_who_asks() -> None:
    # There the kernel knows no `self` for us, so what one call of ours finds must not be the answer.
    script = ("unshare", "-Urpf", "--mount-proc", "sh", "-c", "echo; exec sleep 30")
    outer = subprocess.Popen(script, stdout=subprocess.PIPE)
    assert outer.stdout is not None
    outer.stdout.readline()
    (inner,) = read_children(outer.pid)
    try:
        for path in (b"/proc/self/exe", b"/proc/self/root/proc/1/exe"):
            fd = open_target(inner, AT_FDCWD, path)
            assert os.fstat(fd).st_ino == os.stat(f"/proc/{inner}/exe").st_ino
            os.close(fd)
    finally:
        os.kill(inner, 9)
        outer.wait()


@pytest.mark.parametrize("path", [b"/bin/sh", b"//usr/../bin/./sh", b"folder/../folder/sh", b"folder/sh"])
def test_one_call_finds_what_the_walk_finds(
    path: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("folder/sh").write_text("")
    Path("link").symlink_to("folder/sh")
    place = f"/proc/{HERE}/{'root' if path.startswith(b'/') else 'cwd'}"
    start = os.open(place, os.O_PATH)
    by_call = command_reader._open_by_kernel(start, path)
    by_walk = command_reader._Walk(HERE).follow(path, place)
    assert os.fstat(by_call).st_ino == os.fstat(by_walk).st_ino
    if not path.startswith(b"/"):
        with pytest.raises(OSError, match="symbolic links"):  # where they lead, the walk finds out
            command_reader._open_by_kernel(start, b"link")
    for fd in (start, by_call, by_walk):
        os.close(fd)


def test_relative_paths_links_and_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("/bin/sh")
    Path("up").symlink_to(f"../{tmp_path.name}/link")
    assert target("link") == target("./up") == identity("/bin/sh")
    folder = os.open("/bin", os.O_PATH)
    program = os.open("/bin/sh", os.O_PATH)
    try:
        assert target("sh", folder) == identity("/bin/sh")
        assert target(f"/proc/self/fd/{program}") == target(f"/dev/fd/{program}") == identity("/bin/sh")
        fd = open_target(HERE, program, b"", is_by_descriptor=True)
        assert os.fstat(fd).st_ino == identity("/bin/sh")[1]
        os.close(fd)
    finally:
        os.close(folder)
        os.close(program)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/no/such/file", errno.ENOENT),
        ("/bin/sh/x", errno.ENOTDIR),
        ("", errno.ENOENT),
        ("loop", errno.ELOOP),
        ("x" * 300, errno.ENAMETOOLONG),
    ],
)
def test_what_leads_nowhere_is_said_as_the_kernel_says_it(
    path: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    with pytest.raises(OSError) as refused:
        target(path)
    assert refused.value.errno == number


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_path_that_breaks_off_anywhere_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """The exe of a process that has ended is a link that cannot be read: each try would cost us one."""
    ended = subprocess.Popen(["true"], stdin=subprocess.DEVNULL)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    (tmp_path / "loop").symlink_to("loop")
    before = descriptors()
    for path in (f"/proc/{ended.pid}/exe", str(tmp_path / "loop"), "/no/such/file", "/bin/sh/x"):
        with pytest.raises(OSError):
            target(path)
    assert descriptors() == before
    ended.wait()


def test_a_path_of_links_that_never_ends_is_given_up_and_the_longest_plain_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative ones, which we walk ourselves; the others are one call of the kernel's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    turns = "a/../" * 815  # 4,075 bytes: PATH_MAX is 4,096
    (tmp_path / "l0").symlink_to(f"{turns}a")
    for number in range(1, 10):
        (tmp_path / f"l{number}").symlink_to(f"{turns}l{number - 1}")
    assert target("l0") == target(str(tmp_path / "l0")) == identity(tmp_path / "a")
    with pytest.raises(OSError, match="too many parts"):
        target("l9")
    assert target("/" + "usr/../" * 580 + "bin/sh") == identity("/bin/sh")


# --- memory ----------------------------------------------------------------------------------


def place(text: bytes) -> tuple[ctypes.Array[ctypes.c_char], int]:
    buffer = ctypes.create_string_buffer(text)
    return buffer, ctypes.addressof(buffer)


def test_a_string_is_read_to_its_end_over_pages() -> None:
    buffer, address = place(b"a" * 10_000)
    assert Memory(HERE).string(address, 20_000) == b"a" * 10_000
    del buffer


def test_a_string_that_ends_at_the_last_mapped_byte_is_read_and_one_without_end_is_refused() -> None:
    area = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    area[:] = b"x" * len(area)
    assert (
        ctypes.CDLL(None, use_errno=True).mprotect(
            ctypes.c_void_p(address + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0
        )
        == 0
    )
    ctypes.memset(address + mmap.PAGESIZE - 4, 0, 1)
    assert Memory(HERE).string(address + mmap.PAGESIZE - 8, 4096) == b"xxxx"
    with pytest.raises(OSError):
        Memory(HERE).string(address + mmap.PAGESIZE - 3, 4096)  # runs into what may not be read


def test_an_address_that_is_not_there_is_refused() -> None:
    with pytest.raises(OSError):
        Memory(HERE).string(8, 4096)


def test_arguments_are_limited_in_number_and_length() -> None:
    words = [place(b"w" * (5000 if index == 1 else 3)) for index in range(ARGUMENTS_LIMIT + 20)]
    vector = (ctypes.c_void_p * (len(words) + 1))(*(address for _buffer, address in words))
    found = list(Memory(HERE).arguments(ctypes.addressof(vector)))
    assert len(found) == ARGUMENTS_LIMIT + 1
    assert found[0] == b"www"
    assert found[1].endswith("…".encode())
    assert len(found[1]) < 100
    assert found[-1] == "…".encode()
    assert list(Memory(HERE).arguments(0)) == []


def test_arguments_are_limited_all_together() -> None:
    words = [place(b"w" * 1000) for _ in range(10)]
    vector = (ctypes.c_void_p * 11)(*(address for _buffer, address in words))
    found = list(Memory(HERE).arguments(ctypes.addressof(vector)))
    assert [len(word) for word in found[:-1]] == [1000] * 5  # the one that passes 4096 bytes is the last
    assert found[-1] == "…".encode()


def test_arguments_that_lie_side_by_side_are_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler's fifty arguments, for each of which the command waits."""
    reads = []
    read = kernel.read_memory
    monkeypatch.setattr(kernel, "read_memory", lambda *where: reads.append(where) or read(*where))
    words = [b"-DOPTION%d=1" % index for index in range(50)]
    buffer, address = place(b"\0".join(words))
    starts = [address + sum(len(word) + 1 for word in words[:index]) for index in range(50)]
    vector = (ctypes.c_void_p * 51)(*starts)
    assert list(Memory(HERE).arguments(ctypes.addressof(vector))) == words
    # At most: the vector's 408 bytes and the words' 700 bytes, each over the border of two pages.
    assert 1 <= len(reads) <= 4
    del buffer


# --- the whole ---------------------------------------------------------------------------------


def sight(path: bytes, *words: bytes, pid: int = HERE) -> tuple[Sighting, list[object]]:
    """What the kernel would report of ``execve(path, words, …)`` by this process."""
    held = [place(text) for text in (path, *words)]
    vector = (ctypes.c_void_p * (len(words) + 1))(*(address for _buffer, address in held[1:]))
    args = (held[0][1], ctypes.addressof(vector), 0, 0, 0, 0)
    return Sighting(1, pid, 59, 0, args), [held, vector]


def test_a_command_is_read_with_its_file_and_its_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("#!/usr/bin/env python3\n")
    script.chmod(0o755)
    sighting, _kept = sight(os.fsencode(script), b"s.py", b"--all")
    found = read_command(sighting, is_at=False)
    assert found.identity == identity(script)
    assert (found.path, found.argv, found.file) == (str(script), ("s.py", "--all"), str(script))
    assert (found.interpreter, found.nothing, found.unreadable) == ("/usr/bin/env python3", 0, "")


def test_a_question_whether_something_may_run_is_told_from_a_command() -> None:
    """execveat(2): AT_EXECVE_CHECK is 0x10000, in the fifth argument."""
    sighting, _kept = sight(b"/bin/sh", b"sh")
    path, words = sighting.args[:2]
    for flags, is_check in ((0, False), (0x1000, False), (0x10000, True), (0x11000, True)):
        asked = msgspec.structs.replace(sighting, args=(2**32 - 100, path, words, 0, flags, 0))
        found = read_command(asked, is_at=True)
        assert (found.is_check, found.path, found.nothing) == (is_check, "/bin/sh", 0)


def test_what_is_no_program_is_told_from_what_cannot_be_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("#!/bin/sh")
    sighting, _kept = sight(os.fsencode(data))
    found = read_command(sighting, is_at=False)
    assert (found.nothing, found.interpreter, found.unreadable) == (errno.EACCES, "", "")
    sighting, _kept = sight(b"/no/such/file")
    absent = read_command(sighting, is_at=False)
    assert (absent.nothing, absent.identity, absent.unreadable) == (errno.ENOENT, None, "")
    lost = read_command(Sighting(1, HERE, 59, 0, (8, 8, 0, 0, 0, 0)), is_at=False)
    assert (lost.nothing, lost.path) == (0, "")
    assert "Bad address" in lost.unreadable
    sighting, _kept = sight(b"/bin/sh")
    half = read_command(
        msgspec.structs.replace(sighting, args=(sighting.args[0], 8, 0, 0, 0, 0)), is_at=False
    )
    assert half.path == "/bin/sh"
    assert "Bad address" in half.unreadable
    gone = subprocess.Popen(["true"])
    gone.wait()
    sighting, _kept = sight(b"/bin/sh", pid=gone.pid)
    assert read_command(sighting, is_at=False).unreadable


def test_a_file_in_memory_is_named_as_one() -> None:
    fd = os.memfd_create("copy")
    os.fchmod(fd, 0o755)
    sighting, _kept = sight(f"/proc/self/fd/{fd}".encode())
    found = read_command(sighting, is_at=False)
    os.close(fd)
    assert found.nothing == 0
    assert found.file.startswith("/memfd:copy")
