"""The seal as a plan: which layers, which files, which words for the kernel. Pure."""

from __future__ import annotations

import os
import struct

import pytest

from stockade.errors import ContainmentError
from stockade.policy.model import ExecPolicy
from stockade.sandbox import landlock
from stockade.sandbox.noexec import executable_mounts, plan_steps, read_mounts, verify_mounts
from stockade.sandbox.programs import Program, ProgramSet
from stockade.sandbox.seal import LAYERS, SealFacts, SealPlan, plan_seal
from stockade.sandbox.view import Mount, MountKind, bind

PYTHON = Program(
    path="/usr/bin/python3.11", identity=(1, 10), why="launched", loader="/usr/lib/x86_64-linux-gnu/ld-2.so"
)
TOOL = Program(path="/w/tool", identity=(1, 11), why="exec: tool")
GIT = Program(path="/usr/lib/git-core/git", identity=(1, 12), why="exec: git")


def seal(policy: ExecPolicy | None = None, *, writable: tuple[str, ...] = (), off: str = "") -> SealPlan:
    facts = SealFacts(
        programs=ProgramSet((PYTHON, TOOL, GIT), ("nothere",)),
        libraries=("/w/.venv", "/opt/x/lib"),
        landlock_abi=7,
    )
    layers_off = frozenset(off.split())
    return plan_seal(policy or ExecPolicy(), facts, writable=writable, worker_uid=1000, layers_off=layers_off)


# --- what a dry run says ------------------------------------------------------------------------


def listed(count: int, folder: str, origin: str) -> list[Program]:
    return [
        Program(path=f"{folder}/p{n}", identity=(2, n), why=f"exec: p{n}", origin=f"{origin}:{n}")
        for n in range(count)
    ]


def said(*programs: Program, missing: tuple[str, ...] = ()) -> list[str]:
    facts = SealFacts(programs=ProgramSet(programs, missing), landlock_abi=7)
    policy = ExecPolicy(code="jit", unix_sockets=True)
    plan = plan_seal(policy, facts, writable=(), worker_uid=1000, layers_off=frozenset({"mounts"}))
    return plan.describe()


def test_a_preset_is_one_line_and_what_the_policy_itself_lists_is_a_line_each() -> None:
    own = Program(path="/opt/tool", identity=(3, 1), why="exec: /opt/tool", origin="policy.yaml:4")
    sh = Program(path="/usr/bin/dash", identity=(3, 2), why="interpreter of tool")
    preset = [
        *listed(293, "/usr/bin", "preset:exec/coding"),
        *listed(24, "/usr/lib/git-core", "preset:exec/coding"),
    ]
    assert said(PYTHON, own, sh, *preset, missing=("nothere",)) == [
        "commands: code jit, Unix sockets permitted, programs: 320",
        "may run: /usr/bin/python3.11 – launched",
        "may run: /opt/tool – exec: /opt/tool",
        "may run: /usr/bin/dash – interpreter of tool",
        "may run: 317 of preset exec/coding, 293 in /usr/bin, 24 in /usr/lib/git-core; --json names each",
        "not here: nothere, listed under exec",
    ]


def test_a_long_list_of_the_policy_itself_is_cut_and_says_so() -> None:
    lines = said(*listed(40, "/opt", "policy.yaml"))
    assert len(lines) == 1 + 30 + 1
    assert lines[-1] == "may run: 10 more; --json names each"


# --- what is planned ---------------------------------------------------------------------------


def test_writable_xor_executable() -> None:
    """What the worker could write and run is taken to read only: F20's rule. What is opened is read-only."""
    mounts = seal(writable=("/w",)).mounts
    assert mounts is not None
    assert mounts.libraries == ("/w/.venv", "/opt/x/lib")
    assert mounts.programs == (PYTHON.path, TOOL.path, GIT.path, PYTHON.loader)
    assert mounts.writable == ("/w",)


def test_a_writable_folder_in_an_opened_one_is_closed_and_what_is_named_in_it_is_open() -> None:
    steps = plan_steps(
        opened=["/opt/x", "/opt/x/work/.venv"],
        closed=[],
        programs=["/opt/x/a", "/opt/x/work/b", "/opt/x/work/.venv/c"],
        permitted=["/opt/x/work/tool"],
        writable=["/opt/x/work", "/opt/x/work/.venv", "/elsewhere"],
    )
    assert steps.folders == (("/opt/x", True), ("/opt/x/work", False), ("/opt/x/work/.venv", True))
    assert steps.programs == ("/opt/x/work/tool",)
    assert steps.covered == ("/opt/x/a", "/opt/x/work/.venv/c")


def test_the_longest_entry_above_a_file_says_whether_it_needs_a_mount_of_its_own() -> None:
    steps = plan_steps(
        opened=["/usr/lib", "/usr/lib/llvm/lib"],
        closed=["/usr/lib/llvm"],
        programs=["/usr/lib/git-core/git", "/usr/lib/git-core/git-shell"],
        permitted=[
            "/usr/bin/python3",
            "/usr/lib/git-core/git",
            "/usr/lib/llvm/bin/clang",
            "/usr/lib/llvm/lib/x",
        ],
    )
    assert steps.folders == (("/usr/lib", True), ("/usr/lib/llvm", False), ("/usr/lib/llvm/lib", True))
    assert steps.programs == ("/usr/bin/python3", "/usr/lib/llvm/bin/clang")
    assert steps.covered == ("/usr/lib/git-core/git-shell",)


def test_landlock_executes_the_programs_and_their_loaders_and_nothing_else() -> None:
    assert set(seal().executable) == {PYTHON.path, TOOL.path, GIT.path, PYTHON.loader}


def test_any_program_means_no_list_in_any_layer_and_the_rest_stays() -> None:
    plan = seal(ExecPolicy(mode="any"))
    assert (plan.code, plan.mounts, plan.executable, plan.forbids_new_code) == ("any", None, ("/",), False)
    assert plan.landlock_abi == 7
    assert plan.has_eye


@pytest.mark.parametrize("code", ["closed", "jit"])
def test_the_code_level_reaches_the_filter_and_only_closed_forbids_new_code(code: str) -> None:
    plan = seal(ExecPolicy(code=code))  # type: ignore[arg-type]
    assert plan.filter.code == code
    assert plan.forbids_new_code == (code == "closed")


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_can_be_given_up_alone(layer: str) -> None:
    whole, less = seal(), seal(off=layer)

    def standing(plan: SealPlan) -> dict[str, bool]:
        return {
            "mounts": plan.mounts is not None,
            "memfd": plan.filter.refuse_memory_code and plan.forbids_new_code,
            "landlock": plan.landlock_abi > 0,
            "seccomp": plan.filter.refuse_calls,
            "notify": plan.has_eye,
        }

    assert all(standing(whole).values())
    assert [name for name, is_on in standing(less).items() if not is_on] == [layer]


# --- landlock's words ----------------------------------------------------------------------------

VIEW = (
    bind("/usr", MountKind.READ_ONLY, ""),
    Mount(kind=MountKind.TMPFS, target="/tmp", mode=0o1777),
    Mount(kind=MountKind.TMPFS, target="/run"),
    Mount(kind=MountKind.TMPFS, target="/w/hidden", mode=0o555),
    bind("/w", MountKind.WRITABLE, ""),
    bind("/w2/file", MountKind.WRITABLE, ""),
)


def rules(abi: int = 7) -> dict[str, int]:
    made = landlock.plan_rules(VIEW, frozenset({"/w2/file"}), ["/usr/bin/x", "/"], abi)
    return {path: rights for rights, path in made}


def test_nothing_below_proc_or_usr_may_be_written() -> None:
    made = rules()
    assert not made["/"] & (landlock.WRITE | landlock.MAKE_SOCK)
    assert not [path for path in made if path.startswith(("/proc", "/usr")) and made[path] & landlock.WRITE]
    assert made["/w"] & landlock.WRITE == landlock.WRITE
    assert "/w/hidden" not in made


def test_f6_a_socket_can_be_made_where_nobody_on_the_host_looks_and_nowhere_else() -> None:
    made = rules()
    assert made["/run"] & landlock.MAKE_SOCK
    assert not made["/w"] & landlock.MAKE_SOCK


def test_a_private_folder_that_holds_one_of_the_host_s_gives_no_sockets() -> None:
    """Rights go down the path: those of /tmp would hold in a workspace below /tmp."""
    below = (*VIEW, bind("/tmp/work", MountKind.WRITABLE, ""))
    made = {path: rights for rights, path in landlock.plan_rules(below, frozenset(), [], 7)}
    assert not made["/tmp"] & landlock.MAKE_SOCK
    assert made["/run"] & landlock.MAKE_SOCK


def test_a_single_file_takes_the_rights_of_a_file() -> None:
    """landlock_add_rule(2): EINVAL for folder rights on a file."""
    file_rights = landlock.EXECUTE | landlock.WRITE_FILE | landlock.READ_FILE | landlock.TRUNCATE
    assert rules()["/w2/file"] & ~file_rights == 0
    assert rules()["/usr/bin/x"] == landlock.EXECUTE


@pytest.mark.parametrize(
    ("abi", "rights", "length"),
    [
        (1, 0x1FFF, 8),
        (2, 0x3FFF, 8),
        (3, 0x7FFF, 8),
        (4, 0x7FFF, 16),
        (5, 0xFFFF, 16),
        (6, 0xFFFF, 24),
        (7, 0xFFFF, 24),
    ],
)
def test_only_what_the_kernel_knows_is_named(abi: int, rights: int, length: int) -> None:
    """landlock(7), "Landlock features by ABI"; the structure grew with ABI 4 and 6."""
    ruleset = landlock.compile_ruleset(abi)
    assert len(ruleset) == length
    assert struct.unpack_from("=Q", ruleset)[0] == rights
    assert length < 24 or struct.unpack_from("=Q", ruleset, 16)[0] == 3
    assert all(given & ~rights == 0 for given in rules(abi).values())


# --- what the kernel says of the mounts ----------------------------------------------------------

MOUNTINFO = """\
100 90 0:50 / / ro,nosuid,noexec,relatime - tmpfs tmpfs rw
101 100 8:1 /usr /usr ro,nosuid,noexec,relatime - ext4 /dev/a rw
102 101 8:1 /usr/lib /usr/lib ro,nosuid,nodev shared:4 - ext4 /dev/a rw
103 102 8:1 /usr/lib/git-core/git /usr/lib/git-core/git ro,noexec - ext4 /dev/a rw
104 100 8:1 /home/u/my\\040dir /home/u/my\\040dir rw,nosuid - ext4 /dev/a rw
105 104 8:1 /home/u/my\\040dir /home/u/my\\040dir rw,nosuid,noexec - ext4 /dev/a rw
106 100 8:1 /w\\134x /w\\134x rw - ext4 /dev/a rw
"""


def test_executable_mounts_are_read_from_mountinfo_and_the_last_at_a_place_counts() -> None:
    assert executable_mounts(MOUNTINFO) == {"/usr/lib": True, "/w\\x": False}


def test_what_is_executable_is_planned_and_read_only_with_all_that_is_mounted_in_it() -> None:
    sound = MOUNTINFO.replace("/w\\134x /w\\134x rw", "/w\\134x /w\\134x ro")
    assert sound != MOUNTINFO
    verify_mounts(sound, ["/usr/lib", "/w\\x"])
    verify_mounts(sound, ["/usr", "/w\\x"])
    with pytest.raises(ContainmentError, match="run from /usr/lib,"):
        verify_mounts(sound, ["/usr/lib/git-core", "/w\\x"])
    with pytest.raises(ContainmentError, match="could be run"):
        verify_mounts(MOUNTINFO, ["/usr/lib", "/w\\x"])


def test_a_mount_that_stayed_executable_and_mounts_that_cannot_be_read_stop_the_start() -> None:
    """By the kernel's own list, here that of this process: what the builder says is not enough."""
    mounts = read_mounts(os.getpid())
    with pytest.raises(ContainmentError, match="programs could be run from"):
        verify_mounts(mounts, [])
    with pytest.raises(ContainmentError, match="cannot be read"):
        read_mounts(1 << 22)  # beyond PID_MAX_LIMIT: nobody has this number
