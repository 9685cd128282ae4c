"""The presets for `exec:` against lists that others keep: Debian's packages, and traced runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stockade.decision.commands import ProgramList
from stockade.policy.lint import lint_policy
from stockade.policy.load import list_presets, load_preset
from stockade.policy.model import ExecPolicy

# Made by `dpkg -L`; its head says how.
_LIST = Path(__file__).with_name("data") / "debian12_programs.txt"
_LINES = [line.split() for line in _LIST.read_text().splitlines() if line and not line.startswith("#")]
PACKAGES = {name: paths for name, _version, *paths in _LINES}

_PROFILER = [
    "gp-archive",
    "gp-collect-app",
    "gp-display-html",
    "gp-display-src",
    "gp-display-text",
    "gprofng",
]
# What coding does without, on purpose: a restricted shell, a mailer of fault reports, a remote tape, a
# profiler, Debian's own helpers, a head for extracting archives, a file that is only read by shells.
LEFT_OUT = {
    "bash": ["bashbug", "clear_console", "rbash"],
    "tar": ["rmt-tar"],
    "binutils": _PROFILER,
    "binutils-x86-64-linux-gnu": _PROFILER,
    "perl-base": ["perl5.36.0"],  # the same file as perl
    "python3-minimal": ["py3clean", "py3compile", "py3versions"],
    "gettext-base": ["gettext.sh"],
    "ncurses-bin": ["captoinfo", "infotocap"],  # the same file as tic
    "unzip": ["unzipsfx"],
}


def programs_of(preset: str) -> ExecPolicy:
    policy = load_preset(preset).exec
    assert policy is not None
    return policy


def lists(policy: ExecPolicy, program: str) -> bool:
    return ProgramList(policy).find(program) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_coding_has_every_program_of_the_packages_that_it_is_for(package: str) -> None:
    policy = programs_of("exec/coding")
    listed = ProgramList(policy)
    # gcc and binutils have each program twice, `as` being a link to `x86_64-linux-gnu-as`: one file.
    paths = [path.replace("/x86_64-linux-gnu-", "/") for path in PACKAGES[package]]
    missing = [path for path in paths if listed.find(path) is None]
    assert [path.rpartition("/")[2] for path in missing] == LEFT_OUT.get(package, [])


def test_the_list_of_packages_is_the_one_meant() -> None:
    """Counts by hand: `dpkg -L coreutils | grep -c /bin/` is 105 and chroot is in sbin."""
    assert len(PACKAGES["coreutils"]) == 106
    assert len([path for path in PACKAGES["git"] if path.startswith("/usr/lib/git-core/")]) > 150
    assert {"sh", "bash", "env"} <= {path.rpartition("/")[2] for paths in PACKAGES.values() for path in paths}


@pytest.mark.parametrize(
    "path",
    [
        # the passes of other versions and distributions: Debian 13 and Fedora, Alpine, arm64
        "/usr/libexec/gcc/x86_64-linux-gnu/14/cc1plus",
        "/usr/libexec/gcc/x86_64-redhat-linux/15/lto-wrapper",
        "/usr/lib/gcc/aarch64-linux-gnu/13/collect2",
        "/usr/libexec/git-core/git-remote-https",
        "/usr/bin/gcc-14",
        "/usr/lib/llvm-19/bin/clang",
        # traced on Debian 12: git's scripts, cmake, npm
        "/usr/bin/envsubst",
        "/usr/bin/pkgconf",
        "/usr/bin/ninja",
        "/usr/bin/perl",
        "/usr/bin/ssh",
        "/usr/bin/npm",
    ],
)
def test_coding_has_what_lies_elsewhere(path: str) -> None:
    assert lists(programs_of("exec/coding"), path)


@pytest.mark.parametrize(
    "program",
    ["sudo", "su", "mount", "unshare", "nsenter", "setpriv", "docker", "podman", "busybox", "gdb", "strace"],
)
def test_coding_has_none_that_would_step_out(program: str) -> None:
    assert not lists(programs_of("exec/coding"), program)


@pytest.mark.parametrize(
    ("preset", "code", "unix_sockets", "libraries"),
    [
        ("exec/browser", "jit", True, ()),  # V8; process_singleton makes a Unix socket (F6)
        ("exec/python", "closed", True, (".venv",)),  # forkserver and Manager
        ("exec/node", "jit", False, ()),  # V8; Node ran without AF_UNIX (F6)
        ("exec/coding", "jit", True, (".venv",)),
    ],
)
def test_a_preset_opens_the_levels_that_its_programs_need(
    preset: str, code: str, unix_sockets: bool, libraries: tuple[str, ...]
) -> None:
    policy = programs_of(preset)
    assert (policy.code, policy.unix_sockets, policy.libraries) == (code, unix_sockets, libraries)


def test_every_exec_preset_is_known_here() -> None:
    found = [name for name in list_presets() if name.startswith("exec/")]
    assert found == ["exec/browser", "exec/coding", "exec/node", "exec/python"]


def test_browser_has_chromium_and_its_crash_handler_and_nothing_else() -> None:
    """Debian's Chromium executed exactly these two; the launcher in /usr/bin is a shell script."""
    policy = programs_of("exec/browser")
    here = [entry for entry in policy.allow if entry.startswith("/usr/lib/chromium/")]
    assert here == ["/usr/lib/chromium/chromium", "/usr/lib/chromium/chrome_crashpad_handler"]
    for program in ("sh", "/bin/sh", "/usr/bin/chromium", "chromium", "python3", "node", "xdg-open", "env"):
        assert not lists(policy, program)
    assert all(entry.startswith("/") and "*" not in entry for entry in policy.allow)
    assert "exec-interpreter" not in {finding.code for finding in lint_policy(load_preset("exec/browser"))}


def test_python_has_no_shell_and_node_only_the_one_that_npm_runs_scripts_by() -> None:
    for program in ("sh", "bash", "env", "git", "gcc", "ldconfig", "perl"):
        assert not lists(programs_of("exec/python"), program)
    assert [p for p in ("sh", "bash", "dash", "git", "python3") if lists(programs_of("exec/node"), p)] == [
        "sh"
    ]


def test_what_a_preset_names_need_not_be_there() -> None:
    for name in ("exec/coding", "exec/browser"):
        policy = programs_of(name)
        assert all(policy.is_of_preset(entry) for entry in policy.allow)
