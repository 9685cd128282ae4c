"""The cache says that a program is none: nothing is believed that somebody else may have written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from stockade.sandbox import library_cache
from stockade.sandbox.library_cache import cache_name, load_cached, save_cached

NAME = "cafe0123.json"
SOMEBODY_ELSE = 65533


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with one file in it, which is read (the "can" beside each "cannot")."""
    folder = tmp_path / "cache"
    assert save_cached(str(folder), NAME, b"good")
    assert load_cached(str(folder), NAME) == b"good"
    return folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_what_is_saved_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert save_cached(str(tmp_path / "above" / "cache"), NAME, b"x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "above") == 0o700
    assert mode_of(tmp_path / "above" / "cache") == 0o700
    assert mode_of(tmp_path / "above" / "cache" / NAME) == 0o600


def make_link(cache: Path) -> None:
    (cache / NAME).rename(cache / "elsewhere")
    (cache / NAME).symlink_to("elsewhere")


def make_folder_link(cache: Path) -> None:
    cache.rename(cache.with_name("elsewhere"))
    cache.symlink_to("elsewhere")


def make_fifo(cache: Path) -> None:
    (cache / NAME).unlink()
    os.mkfifo(cache / NAME)


ATTACKS: dict[str, Callable[[Path], None]] = {
    "the file is writable by the group": lambda cache: (cache / NAME).chmod(0o620),
    "the file is writable by all": lambda cache: (cache / NAME).chmod(0o602),
    "the folder is writable by the group": lambda cache: cache.chmod(0o720),
    "the folder is writable by all, sticky or not": lambda cache: cache.chmod(0o1702),
    "the file has a second name": lambda cache: os.link(cache / NAME, cache / "second"),
    "the file is a link": make_link,
    "the folder is a link": make_folder_link,
    "a FIFO is in its place": make_fifo,
    "it is gone": lambda cache: (cache / NAME).unlink(),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_file_that_others_may_have_written_is_not_read(cache: Path, attack: Callable[[Path], None]) -> None:
    attack(cache)
    assert load_cached(str(cache), NAME) == b""


@pytest.mark.needs("root")
@pytest.mark.parametrize("whose", ["file", "folder"])
def test_a_file_of_somebody_else_is_not_read(cache: Path, whose: str) -> None:
    os.chown(cache / NAME if whose == "file" else cache, SOMEBODY_ELSE, SOMEBODY_ELSE)
    assert load_cached(str(cache), NAME) == b""


@pytest.mark.needs("root")
def test_nothing_is_written_into_a_folder_of_somebody_else(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, SOMEBODY_ELSE, SOMEBODY_ELSE)
    assert not save_cached(str(folder), NAME, b"x")
    assert os.listdir(folder) == []


def test_a_planted_link_is_replaced_and_not_followed(cache: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (cache / NAME).unlink()
    (cache / NAME).symlink_to(victim)
    assert save_cached(str(cache), NAME, b"new")
    assert victim.read_text() == "mine"
    assert load_cached(str(cache), NAME) == b"new"


def test_a_write_that_fails_leaves_the_old_content_and_no_rest(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(library_cache.os, "rename", full)
    assert not save_cached(str(cache), NAME, b"new")
    monkeypatch.undo()
    assert load_cached(str(cache), NAME) == b"good"
    assert os.listdir(cache) == [NAME]


def test_the_rest_of_a_killed_process_is_no_obstacle(cache: Path) -> None:
    (cache / f".{NAME}.{os.getpid()}").write_text("half")
    assert save_cached(str(cache), NAME, b"new")
    assert os.listdir(cache) == [NAME]


def test_a_place_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not save_cached(str(tmp_path / "file" / "cache"), NAME, b"x")
    assert load_cached(str(tmp_path / "file" / "cache"), NAME) == b""


def test_too_large_a_file_is_neither_written_nor_read(cache: Path) -> None:
    assert not save_cached(str(cache), "other", bytes(64 * 1024 * 1024 + 1))
    os.truncate(cache / NAME, 64 * 1024 * 1024 + 1)
    assert load_cached(str(cache), NAME) == b""


def test_of_more_than_64_files_the_oldest_go(cache: Path) -> None:
    for number in range(70):
        (cache / f"old{number}").write_text("")
        os.utime(cache / f"old{number}", (number, number))
    assert save_cached(str(cache), NAME, b"new")
    left = set(os.listdir(cache))
    assert len(left) == 64
    assert NAME in left
    assert "old69" in left
    assert "old0" not in left


def test_the_name_is_short_and_safe_whatever_the_path() -> None:
    for path in ("/usr/lib", "/a/../../b", "/n\n", "/\udcff", "/" + "x" * 4000):
        assert len(cache_name(path)) == 13
        assert "/" not in cache_name(path)
    assert cache_name("/usr/lib") != cache_name("/usr/lib64")
