"""Programs in a folder tree, found and found again: what memory must notice, what must not be opened."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stockade
from doubles.elf_files import LIBRARY, PROGRAM
from stockade.errors import HostError
from stockade.sandbox import library_reading
from stockade.sandbox.library_reading import Rules
from stockade.sandbox.library_tree import scan_tree

LATER_NS = 10_000_000_000


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """``git`` and ``inner/cc1`` are programs, the rest is not."""
    root = (tmp_path / "tree").resolve()
    (root / "inner" / "deep").mkdir(parents=True)
    (root / "other").mkdir()
    (root / "git").write_bytes(PROGRAM)
    (root / "lib.so").write_bytes(LIBRARY)
    (root / "text").write_text("words")
    (root / "inner" / "cc1").write_bytes(PROGRAM)
    (root / "inner" / "deep" / "lib.so").write_bytes(LIBRARY)
    return root


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds on, as if the tree had been made then: what changes now changes its stamp for sure."""
    time_ns = library_reading.time.time_ns
    monkeypatch.setattr(library_reading.time, "time_ns", lambda: time_ns() + LATER_NS)


class Opened(list[str]):
    """Names of what was opened for reading: folders by path, files by name."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    seen = Opened()
    open_without_links = library_reading.kernel.open_without_links
    os_open = os.open

    def open_folder(path: str, flags: int) -> int:
        seen.append(path)
        return open_without_links(path, flags)

    def open_file(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags == library_reading._FILE_FLAGS:
            seen.append(path)
        return os_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(library_reading.kernel, "open_without_links", open_folder)
    monkeypatch.setattr(library_reading.os, "open", open_file)
    return seen


class Scan:
    """A scan with a cache; gives paths below the root."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self.cache = cache

    def __call__(self, *, is_root_trusted: bool = False) -> list[str]:
        rules = Rules(is_root_trusted=is_root_trusted, cache_folder=str(self.cache))
        found = scan_tree(str(self.root), rules).programs
        assert sorted(found) == sorted(scan_tree(str(self.root), Rules(is_root_trusted=False)).programs)
        return sorted(os.path.relpath(path, self.root) for path in found)

    def memory(self) -> Path:
        (file,) = self.cache.iterdir()
        return file


@pytest.fixture
def scan(tree: Path, tmp_path: Path) -> Scan:
    return Scan(tree, tmp_path / "cache")


def test_programs_are_found_at_any_depth_whatever_their_mode(scan: Scan) -> None:
    (scan.root / "inner" / "cc1").chmod(0o444)  # ld.so asks for no more than to read it
    assert scan() == ["git", "inner/cc1"]


# --- what is remembered --------------------------------------------------------------------


@pytest.mark.usefixtures("later")
def test_an_unchanged_tree_is_not_read_again(scan: Scan, opened: Opened) -> None:
    rules = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    first = scan_tree(str(scan.root), rules)
    assert {"git", "cc1", "lib.so", "text"} <= set(opened)
    opened.clear()
    assert scan_tree(str(scan.root), rules) == first
    assert opened == []


def test_a_stamp_of_less_than_two_seconds_is_not_believed(
    scan: Scan, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the edge: two seconds after a change another may still leave its stamp as it is."""
    rules = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    newest_ns = max(path.lstat().st_ctime_ns for path in (scan.root, *scan.root.rglob("*")))
    for now_ns, is_read_again in ((newest_ns + 2_000_000_000, True), (newest_ns + 2_000_000_001, False)):
        monkeypatch.setattr(library_reading.time, "time_ns", lambda now_ns=now_ns: now_ns)
        shutil.rmtree(scan.cache, ignore_errors=True)
        scan_tree(str(scan.root), rules)
        opened.clear()
        scan_tree(str(scan.root), rules)
        assert bool(opened) is is_read_again


@pytest.mark.usefixtures("later")
def test_a_file_rewritten_in_place_with_its_mtime_set_back_is_seen(scan: Scan) -> None:
    assert scan() == ["git", "inner/cc1"]
    victim = scan.root / "inner" / "deep" / "lib.so"
    before, folder_before = victim.stat(), victim.parent.stat()
    with open(victim, "r+b") as file:
        file.write(PROGRAM[: before.st_size])
        file.truncate(before.st_size)
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = victim.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
        before.st_mtime_ns,
        before.st_size,
        before.st_ino,
    )
    assert victim.parent.stat().st_ctime_ns == folder_before.st_ctime_ns  # the folder says nothing
    rules = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    assert str(victim) in scan_tree(str(scan.root), rules).programs


@pytest.mark.usefixtures("later")
def test_a_rewritten_file_alone_is_read_again(scan: Scan, opened: Opened) -> None:
    scan()
    (scan.root / "lib.so").write_bytes(PROGRAM)
    rules = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    opened.clear()
    scan_tree(str(scan.root), rules)
    assert opened == [str(scan.root), "lib.so"]


@pytest.mark.needs("root")
@pytest.mark.usefixtures("later")
def test_files_that_root_alone_may_write_are_trusted_only_on_demand(scan: Scan, opened: Opened) -> None:
    """As root everything in the tree is root's; where a worker was root's double it is not believed."""
    trusting = Rules(is_root_trusted=True, cache_folder=str(scan.cache))
    scan_tree(str(scan.root), trusting)
    (scan.root / "lib.so").write_bytes(PROGRAM)
    opened.clear()
    assert str(scan.root / "lib.so") not in scan_tree(str(scan.root), trusting).programs
    assert opened == []
    strict = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    assert str(scan.root / "lib.so") in scan_tree(str(scan.root), strict).programs  # and not from that memory


@pytest.mark.needs("root")
@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("change", [lambda path: os.chown(path, 65533, 0), lambda path: path.chmod(0o664)])
def test_a_file_that_others_may_write_is_watched_among_root_s(
    scan: Scan, change: Callable[[Path], None]
) -> None:
    change(scan.root / "lib.so")
    trusting = Rules(is_root_trusted=True, cache_folder=str(scan.cache))
    scan_tree(str(scan.root), trusting)
    with open(scan.root / "lib.so", "r+b") as file:
        file.write(PROGRAM)
    assert str(scan.root / "lib.so") in scan_tree(str(scan.root), trusting).programs


def swap_folders(root: Path) -> None:
    (root / "inner").rename(root / "kept")
    (root / "other").rename(root / "inner")
    (root / "kept").rename(root / "other")


def replace_folder_by_link(root: Path) -> None:
    shutil.rmtree(root / "inner")
    (root / "inner").symlink_to("other")


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "new file, nested": (
        lambda root: (root / "inner/deep/new").write_bytes(PROGRAM),
        ["git", "inner/cc1", "inner/deep/new"],
    ),
    "deleted": (lambda root: (root / "inner/cc1").unlink(), ["git"]),
    "replaced": (lambda root: os.replace(root / "lib.so", root / "git"), ["inner/cc1"]),
    "renamed": (lambda root: (root / "git").rename(root / "tig"), ["inner/cc1", "tig"]),
    "hard link": (lambda root: os.link(root / "git", root / "other/g"), ["git", "inner/cc1", "other/g"]),
    "folders exchanged": (swap_folders, ["git", "other/cc1"]),
    "folder gone": (lambda root: shutil.rmtree(root / "inner"), ["git"]),
    "folder become a link": (replace_folder_by_link, ["git"]),
    "folder become a file": (
        lambda root: ((root / "other").rmdir(), (root / "other").write_bytes(PROGRAM)),
        ["git", "inner/cc1", "other"],
    ),
    "new folders": (
        lambda root: ((root / "a/b").mkdir(parents=True), (root / "a/b/p").write_bytes(PROGRAM)),
        ["a/b/p", "git", "inner/cc1"],
    ),
    "all gone": (lambda root: shutil.rmtree(root), []),
}


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_seen(scan: Scan, change: Callable[[Path], object], expected: list[str]) -> None:
    assert scan() == ["git", "inner/cc1"]
    change(scan.root)
    assert scan() == expected
    assert scan() == expected


@pytest.mark.usefixtures("later")
def test_a_changed_folder_is_read_again_alone(scan: Scan, opened: Opened) -> None:
    scan()
    (scan.root / "inner" / "new").write_bytes(PROGRAM)
    opened.clear()
    scan_tree(str(scan.root), Rules(is_root_trusted=False, cache_folder=str(scan.cache)))
    assert opened == [str(scan.root / "inner"), "new"]


# --- a cache that lies ---------------------------------------------------------------------


@pytest.mark.usefixtures("later")
def test_the_cache_is_believed_where_it_fits_and_else_not(scan: Scan) -> None:
    """Control and attack in one: the same lie is believed in our own file, and not under another head."""
    scan()
    file = scan.memory()
    memory = json.loads(file.read_text())
    memory[5]["programs"] = []
    rules = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    file.write_text(json.dumps(memory))
    assert scan_tree(str(scan.root), rules).programs == []
    for place, value in (
        (0, memory[0].replace(stockade.__version__, "9.9.9")),
        (0, "0" + memory[0][1:]),
        (0, memory[0].replace(f"({os.geteuid()},", "(4711,")),
        (1, str(scan.root / "other")),
    ):
        forged = [*memory]
        forged[place] = value
        assert forged != memory
        file.write_text(json.dumps(forged))
        assert len(scan_tree(str(scan.root), rules).programs) == 2
        file.write_text(json.dumps(memory))


@pytest.mark.usefixtures("later")
def test_a_cache_cut_or_spoilt_anywhere_is_ignored(scan: Scan) -> None:
    assert scan() == ["git", "inner/cc1"]
    content = scan.memory().read_bytes()
    rules = Rules(is_root_trusted=False, cache_folder=str(scan.cache))
    expected = scan_tree(str(scan.root), rules).programs
    for place in range(0, len(content), 7):
        for spoilt in (content[:place], content[:place] + b"\xff" + content[place + 1 :]):
            scan.memory().write_bytes(spoilt)
            assert sorted(scan_tree(str(scan.root), rules).programs) == sorted(expected)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    ("place", "value"),
    [
        (2, []),
        (3, [1, 2]),
        (4, [[99, ["x"], [1, 2, 3]]]),
        (4, [[0, ["git"], []]]),
        (5, {"programs": [], "ends": ["/nowhere"], "leads": []}),
        (5, {"programs": ["/nowhere/x"], "ends": [], "leads": []}),
        (6, [[99, []]]),
        (2, "text"),
        (3, [10**40]),
    ],
)
def test_numbers_that_do_not_fit_together_are_ignored(scan: Scan, place: int, value: object) -> None:
    scan()
    memory = json.loads(scan.memory().read_text())
    memory[place] = value
    (scan.root / "new").write_bytes(PROGRAM)  # so that the whole memory is looked at
    scan.memory().write_text(json.dumps(memory))
    assert scan() == ["git", "inner/cc1", "new"]


def test_without_a_cache_nothing_is_written(tree: Path, tmp_path: Path) -> None:
    scan_tree(str(tree), Rules(is_root_trusted=False))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]


# --- hostile trees -------------------------------------------------------------------------


def test_what_is_no_file_is_never_opened(scan: Scan, opened: Opened) -> None:
    os.mkfifo(scan.root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(scan.root / "socket"))
        (scan.root / "dead").symlink_to("nowhere")
        (scan.root / "loop").symlink_to("loop")
        (scan.root / "up").symlink_to("..")
        (scan.root / "inner" / "round").symlink_to(scan.root)
        (scan.root / "other" / "linked").symlink_to(scan.root / "git")
        assert scan() == ["git", "inner/cc1"]
    folders = {str(scan.root / name) for name in (".", "inner", "inner/deep", "other")}
    assert set(opened) <= folders | {"git", "lib.so", "text", "cc1"}


@pytest.mark.parametrize("becomes", ["fifo", "link"])
def test_a_file_exchanged_after_it_was_listed_does_no_harm(
    scan: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    """A second process swaps names while we read: a FIFO must not hold us up, a link not lead us out."""
    outside = tmp_path / "outside"
    outside.write_bytes(PROGRAM)
    os_open = os.open

    def swap_then_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "lib.so" and dir_fd is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path, dir_fd=dir_fd)
            if becomes == "fifo":
                os.mkfifo(path, dir_fd=dir_fd)
            else:
                os.symlink(outside, path, dir_fd=dir_fd)
        return os_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(library_reading.os, "open", swap_then_open)
    found = scan_tree(str(scan.root), Rules(is_root_trusted=False)).programs
    assert sorted(found) == [str(scan.root / "git"), str(scan.root / "inner/cc1")]


def test_a_folder_exchanged_for_a_link_does_not_lead_out(
    scan: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(PROGRAM)
    open_without_links = library_reading.kernel.open_without_links

    def swap_then_open(path: str, flags: int) -> int:
        if path == str(scan.root / "inner"):
            shutil.rmtree(path)
            os.symlink(outside, path)
        return open_without_links(path, flags)

    monkeypatch.setattr(library_reading.kernel, "open_without_links", swap_then_open)
    assert scan_tree(str(scan.root), Rules(is_root_trusted=False)).programs == [str(scan.root / "git")]


@pytest.mark.parametrize("through", ["itself", "a folder above it"])
def test_a_tree_that_is_named_through_a_link_is_refused(scan: Scan, tmp_path: Path, through: str) -> None:
    """Not taken for an empty one, of which no program would be covered."""
    (tmp_path / "link").symlink_to(scan.root if through == "itself" else scan.root.parent)
    root = tmp_path / "link" if through == "itself" else tmp_path / "link" / "tree"
    with pytest.raises(HostError, match="library-unread"):
        scan_tree(str(root), Rules(is_root_trusted=False))


@pytest.mark.usefixtures("later")
def test_odd_names_are_found_and_found_again(scan: Scan) -> None:
    (scan.root / "two\nlines").write_bytes(PROGRAM)
    (scan.root / '"[,\\').mkdir()
    (scan.root / '"[,\\' / "\u202e\U0001f600").write_bytes(PROGRAM)
    expected = sorted(["git", "inner/cc1", "two\nlines", '"[,\\/\u202e\U0001f600'])
    assert scan() == expected
    assert scan.memory().stat().st_size > 100
    assert scan() == expected


@pytest.mark.usefixtures("later")
def test_a_name_that_is_not_utf_8_is_found_each_time(scan: Scan) -> None:
    with open(os.fsencode(scan.root) + b"/\xff\xfe", "wb") as file:
        file.write(PROGRAM)
    for _ in range(2):
        assert scan() == ["git", "inner/cc1", "\udcff\udcfe"]


@pytest.mark.usefixtures("later")
def test_a_program_deeper_than_a_path_can_name_is_covered_with_a_folder_above_it(scan: Scan) -> None:
    """PATH_MAX is 4096; the worker goes there step by step, by relative names."""
    name = "d" * 250
    fd = os.open(scan.root / "other", os.O_RDONLY)
    for _ in range(20):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    program = os.open("deep", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(program, PROGRAM)
    os.close(program)
    os.close(fd)
    for _ in range(2):
        (covered,) = (path for path in scan() if path.startswith("other/"))
        assert set(covered.split("/")[1:]) == {name}
        assert len(os.path.join(scan.root, covered)) < 4096
    shutil.rmtree(scan.root / "other")


def test_a_tree_without_end_is_refused(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_reading, "LIMIT_ENTRIES", 8)
    assert scan() == ["git", "inner/cc1"]  # 8 names
    (scan.root / "ninth").write_text("")
    with pytest.raises(HostError, match="library-too-large"):
        scan()


# --- faults --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_process_that_can_open_nothing_more_stops(
    scan: Scan, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Rather than to call everything a program, and to remember that."""
    os_open = os.open

    def exhausted(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "cc1":
            raise OSError(number, os.strerror(number))
        return os_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(library_reading.os, "open", exhausted)
    with pytest.raises(HostError, match="library-unread"):
        scan()


@pytest.mark.usefixtures("later")
def test_a_file_that_a_failing_disk_does_not_give_is_covered_and_tried_again(
    scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_elf_at = library_reading.read_elf_at

    def failing(fd: int) -> object:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("deep/lib.so"):
            raise OSError(errno.EIO, "Input/output error")
        return read_elf_at(fd)

    monkeypatch.setattr(library_reading, "read_elf_at", failing)
    assert scan() == ["git", "inner/cc1", "inner/deep/lib.so"]
    monkeypatch.setattr(library_reading, "read_elf_at", read_elf_at)
    assert scan() == ["git", "inner/cc1"]


@pytest.mark.usefixtures("later")
def test_a_folder_that_a_failing_disk_does_not_give_is_covered_and_tried_again(
    scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_without_links = library_reading.kernel.open_without_links

    def failing(path: str, flags: int) -> int:
        if path.endswith("inner"):
            raise OSError(errno.EIO, "Input/output error")
        return open_without_links(path, flags)

    monkeypatch.setattr(library_reading.kernel, "open_without_links", failing)
    assert scan() == ["git", "inner"]
    monkeypatch.setattr(library_reading.kernel, "open_without_links", open_without_links)
    assert scan() == ["git", "inner/cc1"]


def test_a_long_search_says_how_far_it_is(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 1))
    monkeypatch.setattr(library_reading.time, "monotonic", lambda: next(seconds))
    told: list[int] = []
    scan_tree(str(scan.root), Rules(is_root_trusted=False, on_progress=told.append))
    assert told == sorted(told)
    assert told[-1] == 8
    monkeypatch.setattr(library_reading.time, "monotonic", lambda: 5.0)
    told.clear()
    scan_tree(str(scan.root), Rules(is_root_trusted=False, on_progress=told.append))
    assert told == []


# --- as somebody from whom root's rights do not hide a fault ---------------------------------


def as_ordinary_user(work: Callable[[], list[str]]) -> list[str]:
    """The result of a function in a process without root's rights (65533, as a worker of root has)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(65533, 65533, 65533)
                os.setresuid(65533, 65533, 65533)
            os.write(writer, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    return [str(path) for path in json.loads(answer)]


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="scan-", dir="/tmp") as folder:
        path = Path(folder).resolve()
        path.chmod(0o755)
        yield path
        for below in path.rglob("*"):
            if below.is_dir() and not below.is_symlink():
                below.chmod(0o755)


def scan_public(public: Path, cache: str = "") -> list[str]:
    rules = Rules(is_root_trusted=True, cache_folder=cache)
    found = scan_tree(str(public), rules).programs
    return sorted(os.path.relpath(path, public) for path in found)


def test_a_file_that_can_be_started_and_not_read_is_a_program(public: Path) -> None:
    """execve asks for no right to read; and nothing unreadable can be loaded as a library."""
    (public / "secret").write_bytes(PROGRAM)
    (public / "lib.so").write_bytes(LIBRARY)
    (public / "secret").chmod(0o111)
    assert as_ordinary_user(lambda: scan_public(public)) == ["secret"]


@pytest.mark.usefixtures("later")
def test_a_file_that_becomes_readable_is_read(public: Path) -> None:
    """Its stamp is kept although it is root's: a change of mode does not touch the folder."""
    (public / "cache").mkdir()
    (public / "cache").chmod(0o777)
    (public / "tree").mkdir()
    (public / "tree" / "lib.so").write_bytes(LIBRARY)
    (public / "tree" / "lib.so").chmod(0)
    again = lambda: as_ordinary_user(lambda: scan_public(public / "tree", str(public / "cache" / "c")))
    assert again() == ["lib.so"]
    (public / "tree" / "lib.so").chmod(0o444)
    assert again() == []


def test_a_folder_that_can_be_entered_and_not_listed_is_covered_whole(public: Path) -> None:
    for name, mode in (("entered", 0o111), ("listed", 0o444), ("neither", 0), ("both", 0o555)):
        (public / name).mkdir()
        (public / name / "git").write_bytes(PROGRAM)
        (public / name).chmod(mode)
    assert as_ordinary_user(lambda: scan_public(public)) == ["both/git", "entered"]


@pytest.mark.usefixtures("later")
def test_a_folder_that_becomes_open_is_read(public: Path) -> None:
    (public / "cache").mkdir()
    (public / "cache").chmod(0o777)
    (public / "tree" / "closed").mkdir(parents=True)
    (public / "tree" / "closed" / "git").write_bytes(PROGRAM)
    (public / "tree" / "closed").chmod(0)
    again = lambda: as_ordinary_user(lambda: scan_public(public / "tree", str(public / "cache" / "c")))
    assert again() == []
    (public / "tree" / "closed").chmod(0o755)
    assert again() == ["closed/git"]


@pytest.mark.usefixtures("later")
def test_files_with_other_names_are_remembered_and_a_new_or_lost_name_is_noticed(
    tree: Path, tmp_path: Path, opened: Opened
) -> None:
    """A link changes the ctime of the file, not of the folder that is searched."""
    rules = Rules(is_root_trusted=False, cache_folder=str(tmp_path / "cache"))

    def linked() -> list[str]:
        return sorted(os.path.relpath(path, tree) for path in scan_tree(str(tree), rules).linked)

    assert linked() == []
    os.link(tree / "lib.so", tmp_path / "same")
    os.link(tree / "inner" / "cc1", tmp_path / "compiler")
    assert linked() == ["inner/cc1", "lib.so"]
    (tree / "text").write_text("other words")  # its folder is read again, and lib.so in it is not
    opened.clear()
    assert linked() == ["inner/cc1", "lib.so"]
    assert "lib.so" not in opened
    opened.clear()
    assert linked() == ["inner/cc1", "lib.so"]
    assert opened == []
    (tmp_path / "same").unlink()
    assert linked() == ["inner/cc1"]
