"""Where a control group could be made: read from what the kernel says of us and of its mounts.

The texts are of the forms in proc_pid_mountinfo(5) and cgroups(7), as Debian 12 (version 2), a hybrid
machine and a Docker container of version 1 show them.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from stockade.sandbox import cgroup_place
from stockade.sandbox.cgroup_place import (
    Place,
    is_systemds_own,
    locate,
    open_parent,
    parse_mounts,
    parse_own_groups,
)

V2 = "30 23 0:26 / {0} rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MEMORY = "35 31 0:32 {1} {0}/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
V1_PIDS = "39 31 0:36 / {0}/pids rw,relatime - cgroup cgroup rw,pids,extra\n"
OTHER = "31 23 0:28 / {0} rw,relatime - tmpfs tmpfs rw,mode=755\n22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"


def group(folder: Path, **files: str) -> str:
    """A folder that looks like a group: it has `cgroup.procs`, and files with `_` for the dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"cgroup_procs": "", **files}.items():
        (folder / name.replace("_", ".", 1)).write_text(text)
    return str(folder)


def test_version_2_has_one_group_for_every_controller(tmp_path: Path) -> None:
    own = group(tmp_path / "user.slice" / "a.scope")
    groups = parse_own_groups("0::/user.slice/a.scope\n")
    mounts = parse_mounts((OTHER + V2).format(tmp_path))
    assert locate("memory", groups, mounts) == locate("pids", groups, mounts) == Place(own, is_unified=True)


def test_hybrid_takes_each_controller_from_the_version_that_has_it(tmp_path: Path) -> None:
    memory, rest = group(tmp_path / "memory" / "m"), group(tmp_path / "unified")
    groups = parse_own_groups("8:pids,extra:/\n4:memory:/m\n1:name=systemd:/\n0::/\n")
    mounts = parse_mounts(V1_MEMORY.format(tmp_path, "/") + V1_PIDS.format(tmp_path) + V2.format(rest))
    group(tmp_path / "pids")
    assert locate("memory", groups, mounts) == Place(memory, is_unified=False)
    assert locate("pids", groups, mounts) == Place(str(tmp_path / "pids"), is_unified=False)
    assert locate("hugetlb", groups, mounts) == Place(rest, is_unified=True)


def test_a_mount_of_a_part_of_the_hierarchy_shows_the_path_from_there(tmp_path: Path) -> None:
    group(tmp_path / "memory" / "inner")
    mounts = parse_mounts(V1_MEMORY.format(tmp_path, "/docker/abc"))
    found = locate("memory", parse_own_groups("4:memory:/docker/abc/inner\n"), mounts)
    assert found.folder == f"{tmp_path}/memory/inner"
    with pytest.raises(OSError, match="no mounted hierarchy"):  # the name only begins alike
        locate("memory", parse_own_groups("4:memory:/docker/abcd/inner\n"), mounts)


def test_a_group_outside_of_our_namespace_is_not_taken_for_the_root(tmp_path: Path) -> None:
    group(tmp_path)
    with pytest.raises(OSError, match="no mounted hierarchy"):
        locate("memory", parse_own_groups("0::/../elsewhere\n"), parse_mounts(V2.format(tmp_path)))


def test_a_covered_mount_is_passed_over_and_blanks_in_paths_are_read(tmp_path: Path) -> None:
    shown = group(tmp_path / "a b")
    mounts = parse_mounts(V2.format(tmp_path / "gone") + V2.format(str(tmp_path / "a\\040b")))
    assert locate("pids", parse_own_groups("0::/\n"), mounts).folder == shown


def test_a_kernel_without_control_groups_says_so() -> None:
    with pytest.raises(OSError, match="this kernel has no memory controller") as refused:
        locate("memory", {}, [])
    assert refused.value.errno == errno.ENODEV


def test_version_1_takes_our_own_group_without_a_question(tmp_path: Path) -> None:
    assert open_parent(Place(str(tmp_path), False), frozenset({"memory"}), may_move=False) == str(tmp_path)


def test_version_2_without_the_controller_says_which_one_is_missing(tmp_path: Path) -> None:
    own = group(tmp_path / "own", cgroup_controllers="cpu pids", cgroup_subtree_control="")
    with pytest.raises(OSError, match="was given no memory controller"):
        open_parent(Place(own, True), frozenset({"memory", "pids"}), may_move=True)


def test_where_processes_are_not_even_the_controller_is_switched_on_that_the_kernel_would_permit(
    tmp_path: Path,
) -> None:
    """pids is a threaded controller: the group would become threaded, and no process could join one below."""
    files = {"cgroup_type": "domain", "cgroup_controllers": "pids", "cgroup_subtree_control": ""}
    own = group(tmp_path / "own", cgroup_procs="1\n", **files)
    with pytest.raises(OSError, match="1 other process beside us") as refused:
        open_parent(Place(own, True), frozenset({"pids"}), may_move=True)
    assert refused.value.errno == errno.EBUSY
    assert Path(own, "cgroup.subtree_control").read_text() == ""
    Path(own, "cgroup.type").unlink()  # as in the machine's root group, which is exempt
    assert open_parent(Place(own, True), frozenset({"pids"}), may_move=False) == own
    assert Path(own, "cgroup.subtree_control").read_text() == "+pids"


def test_beside_us_only_if_our_own_group_limits_nothing(tmp_path: Path) -> None:
    """Else the worker would escape a limit that holds us."""
    group(tmp_path, cgroup_subtree_control="memory pids")
    own = group(tmp_path / "own", memory_max="max", cpu_max="max 100000", cgroup_controllers="")
    wanted = frozenset({"memory"})
    assert open_parent(Place(own, True), wanted, may_move=False) == str(tmp_path)
    for name, text in (("memory.max", "1048576"), ("cpu.max", "50000 100000"), ("pids.max", "9")):
        Path(own, name).write_text(text)
        with pytest.raises(OSError, match="was given no memory controller"):
            open_parent(Place(own, True), wanted, may_move=False)
        Path(own, name).write_text("max")


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The folders that systemd has marked; the real mark is an extended attribute of the folder."""
    marked: set[str] = set()
    monkeypatch.setattr(cgroup_place, "_is_delegated", lambda folder: folder in marked)
    return marked


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("as_root")
def test_a_unit_that_systemd_did_not_delegate_is_its_own(tmp_path: Path, marks: set[str]) -> None:
    manager = group(tmp_path / "user@1000.service")
    group(tmp_path / "user@1000.service" / "app.slice")
    scope = group(tmp_path / "user@1000.service" / "app.slice" / "run-1.scope")
    leaf = group(Path(scope) / "leaf")
    marks.add(manager)
    assert is_systemds_own(scope)
    assert is_systemds_own(leaf)
    assert not is_systemds_own(manager)
    marks.add(scope)
    assert not is_systemds_own(scope)
    assert not is_systemds_own(leaf)
    assert not is_systemds_own(group(tmp_path / "no-unit"))


def test_an_ordinary_user_s_manager_makes_no_mark_so_nothing_is_refused(
    tmp_path: Path, marks: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    marks.add(group(tmp_path / "user@1000.service"))
    assert not is_systemds_own(group(tmp_path / "user@1000.service" / "run-1.scope"))


@pytest.mark.usefixtures("as_root")
def test_a_unit_s_group_is_not_used_though_it_could_be(tmp_path: Path, marks: set[str]) -> None:
    own = group(tmp_path / "a.scope", cgroup_controllers="memory", cgroup_subtree_control="memory")
    with pytest.raises(OSError, match="systemd has not delegated"):
        open_parent(Place(own, True), frozenset({"memory"}), may_move=True)
    marks.add(own)
    assert open_parent(Place(own, True), frozenset({"memory"}), may_move=True) == own
