"""The walk through a folder: what it sees, and that no link leads it out."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stockade.errors import HostError
from stockade.sandbox.survey import Survey, bound_sockets, refuse_doors, survey


def test_what_lies_in_a_folder_is_found_by_kind(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    for name in ("HEAD", "objects", "commondir"):
        (tmp_path / "a" / ".git" / name).write_text("")
    (tmp_path / "linked").mkdir()
    for name in ("HEAD", "commondir"):
        (tmp_path / "linked" / name).write_text("")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: x")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").symlink_to("../a/.git")
    os.mkfifo(tmp_path / "b" / "pipe")
    (tmp_path / "b" / "loud").write_text("")
    (tmp_path / "b" / "loud").chmod(0o4755)
    found = survey(str(tmp_path), privileged_since_s=time.time() - 5)
    assert found.git_folders == [f"{tmp_path}/a/.git"]
    assert found.linked_folders == [f"{tmp_path}/linked"]
    assert found.git_files == [f"{tmp_path}/tree/.git"]
    assert found.git_links == [f"{tmp_path}/b/.git"]
    assert found.doors == [f"{tmp_path}/b/pipe"]
    assert found.privileged == [f"{tmp_path}/b/loud"]
    assert found.entries == 14
    assert survey(str(tmp_path)).privileged == []


@pytest.mark.needs("root")
def test_device_nodes_are_found(tmp_path: Path) -> None:
    os.mknod(tmp_path / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    assert survey(str(tmp_path), privileged_since_s=time.time()).privileged == [f"{tmp_path}/zero"]
    assert survey(str(tmp_path)).doors == []


def test_a_link_is_not_walked_through(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    os.mkfifo(tmp_path / "outside" / "pipe")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "outside")
    assert survey(str(tmp_path / "in")).doors == []
    assert survey(str(tmp_path)).doors == [f"{tmp_path}/outside/pipe"]


def test_r134_a_folder_that_is_swapped_for_a_link_during_the_walk_leads_nowhere(tmp_path: Path) -> None:
    # A worker of another run swaps as fast as it can; the walk must never report what lies outside.
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    os.mkfifo(outside / "secret-pipe")
    for number in range(40):
        (root / str(number)).mkdir(parents=True)
    is_over = False

    def swap() -> None:
        while not is_over:
            for number in range(40):
                os.rename(root / str(number), root / "aside")
                os.symlink(outside, root / str(number))
                os.unlink(root / str(number))
                os.rename(root / "aside", root / str(number))

    swapper = threading.Thread(target=swap)
    swapper.start()
    end = time.monotonic() + 0.7
    seen: list[list[str]] = []
    while time.monotonic() < end:
        seen.append(survey(str(root)).doors)
    is_over = True
    swapper.join()
    assert len(seen) > 3
    assert not any(seen)


AS_ORDINARY_USER = """
import sys
from stockade.errors import HostError
from stockade.sandbox.survey import refuse_doors, survey
found = survey(sys.argv[1])
try:
    refuse_doors(sys.argv[1], found, tuple(sys.argv[2:]))
    print("shown")
except HostError as error:
    print(error.code, found.closed)
"""


def test_a_folder_that_can_be_passed_but_not_listed_is_refused(tmp_path: Path) -> None:
    ordinary = ["setpriv", "--reuid", "65000", "--regid", "65000", "--clear-groups"]
    look = [*(ordinary if os.geteuid() == 0 else []), sys.executable, "-c", AS_ORDINARY_USER, str(tmp_path)]

    def shown(*hidden: str) -> str:
        return subprocess.run([*look, *hidden], capture_output=True, text=True, cwd="/").stdout.strip()

    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    dark = tmp_path / "dark"
    dark.mkdir()
    if os.geteuid() == 0:
        os.chown(dark, 65000, 65000)
    for mode in (0o311, 0o000):  # its owner, who the worker is, could open it
        dark.chmod(mode)
        assert shown() == f"view-not-searchable ['{dark}']"
        assert shown(str(dark)) == "shown"
    dark.chmod(0o755)
    assert shown() == "shown"


def test_too_many_names_are_refused() -> None:
    found = Survey([], [], [], [], [], [], [], [], entries=1_000_001, is_complete=False)
    with pytest.raises(HostError, match="view-too-large"):
        refuse_doors("/w", found, ())


def test_sockets_that_processes_have_bound_are_found_by_the_kernel_s_list(tmp_path: Path) -> None:
    path = tmp_path / "with space.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert bound_sockets((str(tmp_path),)) == (str(path),)
        assert bound_sockets((str(tmp_path / "other"),)) == ()
    assert bound_sockets((str(tmp_path),)) == ()  # nobody answers there any more
