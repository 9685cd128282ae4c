"""Hard links in writable folders to files that may run: found by the file, wherever they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.errors import HostError
from stockade.sandbox import other_names
from stockade.sandbox.other_names import files_in, find_other_names


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A writable folder with a tool, a folder of libraries, and other files."""
    for name in ("work/lib", "work/deep/er", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("work/tool", "work/lib/a.so", "work/other", "work/deep/x"):
        (tmp_path / name).write_text(name)
    return tmp_path / "work"


def find(work: Path, *files: str) -> list[str]:
    paths = [str(work / name) for name in files]
    read_only = [str(work / "lib"), str(work / "tool")]
    found = find_other_names(paths, writable=[str(work)], read_only=read_only)
    return sorted(os.path.relpath(path, work) for path in found)


def test_every_name_in_what_may_be_written_is_found_and_none_elsewhere(work: Path) -> None:
    os.link(work / "tool", work / "deep/er/same")
    os.link(work / "tool", work.parent / "elsewhere/same")
    os.link(work / "lib/a.so", work / "same.so")
    os.link(work / "lib/a.so", work / "lib/b.so")  # read-only with its folder
    os.link(work / "other", work / "deep/other")  # has two names, and may not run
    (work / "link").symlink_to("tool")
    assert find(work, "tool", "lib/a.so", "lib/b.so") == ["deep/er/same", "same.so"]
    assert find(work, "lib/a.so") == ["same.so"]


def test_a_single_file_that_may_be_written_can_be_the_other_name(work: Path) -> None:
    other = work.parent / "elsewhere/same"
    os.link(work / "tool", other)
    assert find_other_names([str(work / "tool")], writable=[str(other)]) == [str(other)]


def test_where_no_file_has_a_second_name_nothing_is_searched(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_names, "LIMIT_ENTRIES", 0)
    assert find(work, "tool", "lib/a.so") == []
    os.link(work / "tool", work / "same")
    with pytest.raises(HostError, match="too many"):
        find(work, "tool")


def test_more_names_than_can_be_closed_stop_the_start(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_names, "LIMIT_NAMES", 2)
    for number in range(2):
        os.link(work / "tool", work / f"same{number}")
    assert find(work, "tool") == ["same0", "same1"]
    os.link(work / "tool", work / "same2")
    with pytest.raises(HostError, match=r"tool and others .* hard links"):
        find(work, "tool")


def test_files_of_places_are_those_below_folders_and_the_places_themselves(work: Path) -> None:
    found = set(files_in([str(work / "lib"), str(work / "tool"), str(work / "gone")]))
    assert found >= {str(work / "tool"), str(work / "lib" / "a.so")}
    assert str(work / "other") not in found
    os.link(work / "lib" / "a.so", work / "same.so")
    assert find_other_names(found, writable=[str(work)], read_only=[str(work / "lib")]) == [
        str(work / "same.so")
    ]
