"""The plan as a value: what is shown in which order, who the worker is, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from stockade.errors import UserError
from stockade.policy.model import ExecPolicy
from stockade.sandbox.bubblewrap import compile_arguments
from stockade.sandbox.paths import PathFact
from stockade.sandbox.plan import HostFacts, SandboxPlan, SandboxRequest, plan_sandbox
from stockade.sandbox.room import RoomTools
from stockade.sandbox.seal import SealFacts
from stockade.sandbox.view import STAGE_PATH, Mount, MountKind, chain_below


def fact(path: str, *, is_folder: bool = True, owner: int = 1000, inode: int = 7) -> PathFact:
    return PathFact(path, is_folder, owner, owner, 1, inode)


def host(**changes: Any) -> HostFacts:
    facts = HostFacts(
        uid=1000,
        gid=1000,
        started_as_root=False,
        machine="x86_64",
        bwrap="/usr/bin/bwrap",
        tools=RoomTools(ip="/usr/sbin/ip", nft="/usr/sbin/nft"),
        interpreter="/usr/bin/python3",
        root_links=(("/bin", "usr/bin"),),
        root_folders=(),
        etc=(("ssl/certs", True), ("services", False)),
        caches=(),
        seal=SealFacts(landlock_abi=7),
        workspace=fact("/home/u/w"),
    )
    return msgspec.structs.replace(facts, **changes)


def plan(request: dict[str, Any] | None = None, **changes: Any) -> SandboxPlan:
    wanted = {"argv": ("true",), "workspace": Path("/home/u/w"), **(request or {})}
    return plan_sandbox(SandboxRequest(**wanted), host(**changes))


def kinds(mounts: tuple[Mount, ...], target: str) -> list[MountKind]:
    return [mount.kind for mount in mounts if mount.target == target]


def place(mounts: tuple[Mount, ...], target: str) -> int:
    return max(index for index, mount in enumerate(mounts) if mount.target == target)


def test_the_workspace_is_read_only_by_default_and_writable_when_asked_for() -> None:
    assert kinds(plan().mounts, "/home/u/w") == [MountKind.READ_ONLY]
    assert kinds(plan(write=(fact("/home/u/w"),)).mounts, "/home/u/w") == [MountKind.WRITABLE]


def test_the_root_is_frozen_last() -> None:
    last = plan(write=(fact("/home/u/w"),), hide=(fact("/home/u/w/s"),)).mounts[-1]
    assert (last.kind, last.target) == (MountKind.FREEZE, "/")


def test_private_folders_come_before_what_is_bound_below_them() -> None:
    mounts = plan(workspace=fact("/tmp/w"), read=(fact("/run/data"),)).mounts
    assert place(mounts, "/tmp") < place(mounts, "/tmp/w")
    assert place(mounts, "/run") < place(mounts, "/run/data")


def test_protection_comes_after_the_writable_folder_and_hiding_after_both() -> None:
    mounts = plan(
        write=(fact("/home/u/w"),), protected=(fact("/home/u/w/.git/hooks"),), hide=(fact("/home/u/w/.git"),)
    ).mounts
    assert place(mounts, "/home/u/w") < place(mounts, "/home/u/w/.git/hooks")
    assert kinds(mounts, "/home/u/w/.git") == [MountKind.WRITABLE, MountKind.TMPFS, MountKind.FREEZE]
    assert place(mounts, "/home/u/w/.git/hooks") < place(mounts, "/home/u/w/.git")


def test_each_folder_above_a_protected_path_is_pinned_so_that_it_cannot_be_renamed() -> None:
    assert chain_below("/w", "/w/a/b/.git/hooks") == ["/w/a", "/w/a/b", "/w/a/b/.git"]
    assert chain_below("/w", "/w/.envrc") == []
    assert chain_below("/", "/a/b") == ["/a"]
    mounts = plan(write=(fact("/home/u/w"),), protected=(fact("/home/u/w/a/.git/hooks"),)).mounts
    assert kinds(mounts, "/home/u/w/a") == kinds(mounts, "/home/u/w/a/.git") == [MountKind.WRITABLE]
    assert kinds(mounts, "/home/u/w/a/.git/hooks") == [MountKind.READ_ONLY]


def test_what_lies_outside_writable_folders_needs_no_protection() -> None:
    assert kinds(plan(protected=(fact("/home/u/w/.git/hooks"),)).mounts, "/home/u/w/.git/hooks") == []


def test_a_path_inside_a_writable_folder_is_not_bound_again() -> None:
    mounts = plan(write=(fact("/home/u/w"),), read=(fact("/home/u/w/sub"),)).mounts
    assert kinds(mounts, "/home/u/w/sub") == []
    mounts = plan(write=(fact("/home/u/w/sub"),)).mounts  # the reverse: opened inside what is read-only
    assert kinds(mounts, "/home/u/w/sub") == [MountKind.WRITABLE]
    assert place(mounts, "/home/u/w") < place(mounts, "/home/u/w/sub")


def test_own_files_are_covered_only_where_they_would_be_seen() -> None:
    mounts = plan(invisible=(("/home/u/w/ledger", True, True), ("/home/u/policy.yaml", False, True))).mounts
    assert kinds(mounts, "/home/u/w/ledger") == [MountKind.TMPFS, MountKind.FREEZE]
    assert kinds(mounts, "/home/u/policy.yaml") == []


def test_started_by_root_the_operator_s_folders_get_an_id_map_and_the_system_s_do_not() -> None:
    mounts = plan(started_as_root=True, uid=65533, gid=65533, workspace=fact("/root/w", owner=0)).mounts
    owners = {mount.target: mount.owner for mount in mounts}
    assert owners["/root/w"] == (0, 0)
    assert owners["/usr"] is None
    assert {m.owner for m in plan().mounts} == {None}


def test_a_terminal_is_given_only_when_input_and_output_are_one() -> None:
    streams = {"stdin_is_terminal": True, "stdout_is_terminal": True}
    assert plan(**streams).terminal
    assert not plan(**{**streams, "stdout_is_terminal": False}).terminal
    assert not plan(**{**streams, "stdin_is_terminal": False}).terminal


@pytest.mark.parametrize("layer", ["privileges", "lifeline"])
def test_a_layer_that_cannot_be_given_up_is_refused(layer: str) -> None:
    with pytest.raises(UserError) as refused:
        plan({"layers_off": frozenset({layer})})
    assert layer in refused.value.message


def test_no_command_is_refused() -> None:
    with pytest.raises(UserError):
        plan({"argv": ()})


def test_the_command_line_names_the_user_namespace_and_never_blocks_on_a_descriptor() -> None:
    made = plan()
    descriptors = {"info": 5, "lifeline": 6, STAGE_PATH: 8}
    descriptors |= {mount.target: 9 for mount in made.mounts if mount.data or mount.kind is MountKind.COPY}
    line = compile_arguments(made, descriptors=descriptors, sources={}, dies_with_thread=True)
    for option in (
        "--unshare-user",
        "--unshare-all",
        "--disable-userns",
        "--as-pid-1",
        "--new-session",
        "--clearenv",
    ):
        assert option in line
    assert "--block-fd" not in line
    assert line[line.index("--cap-drop") + 1] == "ALL"
    assert line[-6:] == ["--", "/usr/bin/python3", "-I", "-S", STAGE_PATH, "6"]
    assert "--die-with-parent" not in compile_arguments(
        made, descriptors=descriptors, sources={}, dies_with_thread=False
    )


def test_the_description_says_what_is_given_up() -> None:
    said = "\n".join(plan({"layers_off": frozenset({"room"})}).describe())
    assert "room: GIVEN UP" in said
    assert "uid 1000" in said
    assert "/home/u/w: read-only – workspace" in said


def test_where_sockets_cannot_be_made_in_tmp_programs_are_told_of_another_folder() -> None:
    """Landlock's rights go down the path, so /tmp with a shared folder in it gives no sockets."""
    below = {"workspace": fact("/tmp/w"), "write": (fact("/tmp/w"),)}
    sockets = {"exec": ExecPolicy(unix_sockets=True)}
    assert plan(sockets, **below).environment["TMPDIR"] == "/var/tmp"
    assert plan(**below).environment["TMPDIR"] == "/tmp"
    assert plan(sockets).environment["TMPDIR"] == "/tmp"


@pytest.mark.parametrize(
    ("unix_sockets", "folder", "extra", "expected"),
    [
        (True, "/tmp/w", (), "/var/tmp"),  # below /tmp lies the host's, so /tmp takes no sockets
        (True, "/home/u/w", (), "/tmp"),
        (False, "/tmp/w", (), "/tmp"),
        (True, "/tmp/w", ("TMPDIR=/home/u/w/tmp",), "/home/u/w/tmp"),  # the operator's word counts
    ],
)
def test_programs_put_their_sockets_where_they_can_be_made(
    unix_sockets: bool, folder: str, extra: tuple[str, ...], expected: str
) -> None:
    request = {"exec": ExecPolicy(unix_sockets=unix_sockets), "extra_environment": extra}
    assert plan(request, workspace=fact(folder), write=(fact(folder),)).environment["TMPDIR"] == expected


def test_names_come_from_the_room_and_without_it_from_where_the_host_gets_them() -> None:
    [own] = [mount for mount in plan().mounts if mount.target == "/etc/resolv.conf"]
    assert (own.kind, own.data) == (MountKind.DATA, b"nameserver 198.18.0.1\noptions ndots:1\n")
    without = plan({"layers_off": frozenset({"room"})}).mounts
    [as_on_host] = [mount for mount in without if mount.target == "/etc/resolv.conf"]
    assert (as_on_host.kind, as_on_host.source) == (MountKind.COPY, "/etc/resolv.conf")
