"""Second names of what may be executed: found where the worker writes, and only there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stockade.errors import HostError
from stockade.sandbox import other_names
from stockade.sandbox.other_names import files_in, find_other_names


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A writable folder with a program, a folder of libraries, and files that are neither."""
    work = tmp_path / "work"
    (work / "lib").mkdir(parents=True)
    for name in ("tool", "text", "lib/x.so"):
        (work / name).write_text(name)
    return work


def find(work: Path, *files: Path, read_only: tuple[Path, ...] = ()) -> list[str]:
    kept = (work / "tool", work / "lib", *read_only)
    found = find_other_names([str(file) for file in files], [str(work)], [str(path) for path in kept])
    return sorted(os.path.relpath(path, work) for path in found)


def test_names_that_can_be_written_are_found_and_those_that_cannot_are_not(work: Path) -> None:
    (work / "deep" / "er").mkdir(parents=True)
    os.link(work / "tool", work / "deep" / "er" / "tool2")
    os.link(work / "lib" / "x.so", work / "y.so")
    os.link(work / "lib" / "x.so", work / "lib" / "z.so")
    os.link(work / "text", work / "text2")
    tool, library = work / "tool", work / "lib" / "x.so"
    assert find(work, tool, library) == ["deep/er/tool2", "y.so"]
    assert find(work, tool, library, read_only=(work / "deep",)) == ["y.so"]
    assert find(work, library) == ["y.so"]


def test_a_program_outside_whose_second_name_is_in_the_folder_is_found(work: Path, tmp_path: Path) -> None:
    os.link(work / "tool", tmp_path / "tool")
    assert find_other_names([str(tmp_path / "tool")], [str(work)], []) == (str(work / "tool"),)
    # A single file that may be written is a place too.
    assert find_other_names([str(tmp_path / "tool")], [str(work / "tool")], []) == (str(work / "tool"),)


def test_links_are_not_followed_and_nothing_is_walked_without_a_second_name(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(work / "tool", tmp_path / "outside")
    (work / "link").symlink_to(tmp_path)
    assert find(work, work / "tool") == []
    (tmp_path / "outside").unlink()
    monkeypatch.setattr(other_names, "_names", None)
    assert find(work, work / "tool", Path("/usr/bin/perl"), work / "gone") == []


def test_files_of_places_are_those_below_folders_and_the_places_themselves(work: Path) -> None:
    found = set(files_in([str(work / "lib"), str(work / "text"), str(work / "gone")]))
    assert found >= {str(work / "text"), str(work / "lib" / "x.so")}
    assert str(work / "tool") not in found


def test_too_many_are_refused(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_names, "OTHER_NAMES_LIMIT", 2)
    for number in range(2):
        os.link(work / "tool", work / f"tool{number}")
    assert len(find(work, work / "tool")) == 2
    os.link(work / "tool", work / "tool2")
    with pytest.raises(HostError, match="second names"):
        find(work, work / "tool")
