"""What /proc says of a process, as proc(5) lays it out, and a folder of it that is held open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.sandbox.processes import (
    ARGV_BYTES,
    ARGV_WORDS,
    LEFT_OUT,
    Effort,
    ProcessFolder,
    parse_argv,
    parse_info,
    parse_stat,
)

SOCKETS = 10


def stat_line(name: bytes = b"curl", parent: int = 7, start: int = 12345, stack: int = 140000) -> bytes:
    """proc_pid_stat(5): parent 4, start time 22, startcode 26, startstack 28, arguments 48 to 51."""
    fields = dict.fromkeys(range(3, 53), b"0")
    fields |= {3: b"S", 4: b"%d" % parent, 22: b"%d" % start, 26: b"4096", 28: b"%d" % stack}
    fields |= {48: b"481", 49: b"491", 50: b"501", 51: b"511"}
    return b"42 (%s) " % name + b" ".join(fields[n] for n in range(3, 53)) + b"\n"


@pytest.mark.parametrize("name", [b"curl", b"a b", b"x) S 1 2 3 (", b") )", b""])
def test_a_stat_line_is_read_whatever_the_process_calls_itself(name: bytes) -> None:
    stat = parse_stat(stat_line(name))
    assert (stat.parent, stat.start_time) == (7, 12345)
    assert stat.image == (b"4096", b"140000", b"481", b"491", b"501", b"511")


def test_an_image_that_is_not_shown_is_none_and_equal_to_no_other() -> None:
    assert parse_stat(stat_line(stack=0)).image == ()


@pytest.mark.parametrize("text", [b"", b"42 curl S 1", b"42 (curl) S 1 2"])
def test_what_is_no_stat_line_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse_stat(text)


def test_arguments_are_whole_words_and_what_is_left_out_is_marked() -> None:
    assert parse_argv(b"curl\0-s\0\0http://a.test/\0") == (b"curl", b"-s", b"", b"http://a.test/")
    assert parse_argv(b"") == ()
    assert parse_argv(b"nginx: worker process") == (b"nginx: worker process",)  # setproctitle(3)
    assert parse_argv(b"a\0" * (ARGV_WORDS + 1)) == (b"a",) * ARGV_WORDS + (LEFT_OUT,)
    assert parse_argv(b"a\0" * ARGV_WORDS) == (b"a",) * ARGV_WORDS


def test_r164_a_word_that_was_cut_is_left_out_since_half_a_secret_is_not_recognized() -> None:
    cut = (b"curl\0" + b"x" * ARGV_BYTES)[:ARGV_BYTES]
    assert parse_argv(cut) == (b"curl", LEFT_OUT)
    assert parse_argv(cut[:-1]) == (b"curl", cut[5:-1])


def test_the_mount_and_inode_of_a_descriptor_are_read() -> None:
    assert parse_info(b"pos:\t0\nflags:\t02000002\nmnt_id:\t10\nino:\t27775717\n") == (10, 27775717)
    assert parse_info(b"pos:\t0\nflags:\t02\nmnt_id:\t10\nino:\t5\neventfd-count: 1\n") == (10, 5)
    assert parse_info(b"pos:\t0\nflags:\t02\nmnt_id:\t10\n") is None  # before Linux 5.14


def test_an_effort_ends() -> None:
    effort = Effort(3)
    assert [effort.spend(), effort.spend(2), effort.spend()] == [True, True, False]


# --- a folder, made by hand --------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A process 42 with three descriptors: a file, socket 77, socket 78."""
    for kind in ("fd", "fdinfo"):
        (tmp_path / "42" / kind).mkdir(parents=True)
    for number, target, mount, inode in (
        (0, "/dev/null", 25, 77),  # a file that has the same inode number as the socket
        (3, "socket:[77]", SOCKETS, 77),
        (4, "socket:[78]", SOCKETS, 78),
    ):
        (tmp_path / "42/fd" / str(number)).symlink_to(target)
        (tmp_path / "42/fdinfo" / str(number)).write_text(f"pos:\t0\nmnt_id:\t{mount}\nino:\t{inode}\n")
    return tmp_path


def open_folder(root: Path) -> ProcessFolder:
    return ProcessFolder(os.open(root, os.O_RDONLY | os.O_DIRECTORY), "42", SOCKETS)


def test_a_socket_is_found_by_its_link(root: Path) -> None:
    with open_folder(root) as folder:
        assert folder.find_socket(77, Effort(100)) == "3"
        assert folder.find_socket(79, Effort(100)) is None
        assert folder.find_socket(77, Effort(1)) is None  # 4 is looked at first
        assert folder.has_socket("3", 77)
        assert not folder.has_socket("4", 77)
        assert not folder.has_socket("5", 77)


def refuse_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an undumpable process does to an ordinary user: its `fd` belongs to root."""
    real = os.open

    def refuse(path: str, *rest: int, **more: int) -> int:
        if path == "fd":
            raise PermissionError(13, "fd")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)


def test_of_an_undumpable_process_the_descriptions_tell(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_links(monkeypatch)
    with open_folder(root) as folder:
        assert folder.find_socket(77, Effort(100)) == "3"
        assert folder.has_socket("4", 78)


def test_a_file_with_the_number_of_a_socket_is_not_the_socket(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_links(monkeypatch)
    with open_folder(root) as folder:
        assert not folder.has_socket("0", 77)
        (root / "42/fdinfo/3").unlink()
        assert folder.find_socket(77, Effort(100)) is None
