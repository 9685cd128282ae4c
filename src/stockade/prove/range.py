"""The range: a sealed internet in two network namespaces, for whatever attacks or misbehaves.

*host* is where the command runs (10.9.0.2, fd09::2), *world* plays everybody else: every
address is local there. One veth pair joins them, nothing leads out of either. Order of
steps and why:

1. The caller's process leaves its namespaces and stays outside as the one that waits.
   An ordinary user enters a user namespace first, in which he is root for the set-up.
2. Its child is PID 1 of a new PID namespace: when it ends, by whatever cause, the kernel
   ends all the rest. It ends when the caller ends (parent-death signal and lifeline).
3. Mounts, then the world, then the command. The command never has the range's
   privileges when it is to run as an ordinary user: it is put into a nested user
   namespace as its own uid (ordinary caller) or its uid is changed (root with ``--user``).

Nothing has a name outside, so nothing is left behind.

Usage: ``python -m stockade.prove.range [--user] -- COMMAND ...``.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from stockade.errors import HostError, StockadeError, UserError
from stockade.prove import namespaces as ns
from stockade.prove.sealed import SEALED_VARIABLE, sealed_proof

HOST_ADDRESSES = ("10.9.0.2/24", "fd09::2/64")
WORLD_ADDRESSES = ("10.9.0.1/24", "fd09::1/64")
NAME_SERVER = "9.9.9.9"
DEVICE = "range0"

_BASES = ("/media", "/srv", "/opt", "/mnt")
_FIRST_FREE_UID = 6001
# What they say is about the machine's network, and would mislead clients in this one.
_STALE_VARIABLES = frozenset(
    {
        "http_proxy",
        "https_proxy",
        "ftp_proxy",
        "all_proxy",
        "no_proxy",
        "ssl_cert_file",
        "ssl_cert_dir",
        "curl_ca_bundle",
        "requests_ca_bundle",
        "git_ssl_cainfo",
        "node_extra_ca_certs",
        "pip_index_url",
        "pip_extra_index_url",
        "pip_cert",
        "pip_config_file",
        "uv_index_url",
        "uv_default_index",
        "npm_config_registry",
    }
)
_HIDDEN_SOCKET_FOLDERS = ("/run/nscd", "/run/systemd/resolve")


class Caller(msgspec.Struct, frozen=True):
    """Who runs the range, and as whom the command shall run (`None`: as the caller)."""

    uid: int
    gid: int
    command_uid: int | None

    @property
    def is_root(self) -> bool:
        return self.uid == 0


def run_in_range(command: list[str], as_user: bool = False) -> int:
    """Run `command` in *host* with the world up; return its exit code (128+N when a signal ended it).

    Raises:
        UserError: No command, or `--user` makes no sense here.
        HostError: This host cannot make the range; nothing was started.
    """
    if not command:
        raise UserError("no-command", "say what to run in the range", "tools/sealed -- COMMAND")
    caller = Caller(os.getuid(), os.getgid(), _free_uid() if as_user and os.getuid() == 0 else None)
    _leave_namespaces(caller)
    lifeline_r, lifeline_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(lifeline_w)
        _exit_with(lambda: _be_first_process(caller, command, lifeline_r))
    os.close(lifeline_r)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: os.kill(pid, received))
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the terminal sends it to the command as well, which decides
    return _wait_for(pid)


def _leave_namespaces(caller: Caller) -> None:
    everything = ns.CLONE_NEWNS | ns.CLONE_NEWNET | ns.CLONE_NEWPID | ns.CLONE_NEWIPC | ns.CLONE_NEWUTS
    try:
        if not caller.is_root:
            ns.unshare(ns.CLONE_NEWUSER)
            ns.map_single_id(0, caller.uid, caller.gid)
        ns.unshare(everything)
        ns.mount("none", "/", flags=ns.MS_REC | ns.MS_PRIVATE)
    except OSError as problem:
        raise HostError(
            "range-namespaces",
            f"cannot make the range's namespaces: {problem}",
            "as an ordinary user this needs user namespaces (sysctl user.max_user_namespaces, "
            "kernel.apparmor_restrict_unprivileged_userns=0); else run it as root",
        ) from problem


# --- PID 1 -----------------------------------------------------------------------------


def _be_first_process(caller: Caller, command: list[str], lifeline: int) -> int:
    ns.set_parent_death_signal(signal.SIGKILL)
    base = _make_base(caller)
    _mount_system_folders()
    _mount_names(base, caller)
    if caller.command_uid is not None:
        _open_the_way(caller.command_uid)
    _start_world(base)
    _end_with(lifeline)
    pid = os.fork()
    if pid == 0:
        _exit_with(lambda: _become_command(base, caller, command))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: os.kill(pid, received))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return _wait_for(pid)


def _end_with(lifeline: int) -> None:
    """End this process, and so the PID namespace, when the caller's end of the pipe closes.

    The parent-death signal does the same, but is missed if the caller died before it was set.
    """

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _make_base(caller: Caller) -> Path:
    """A private tmpfs on a folder that exists everywhere and that nothing of ours lies in."""
    needed = [Path.cwd(), Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve()]
    for candidate in map(Path, _BASES):
        if not candidate.is_dir() or candidate.is_mount():  # mounted: a range around this one uses it
            continue
        if not any(path.is_relative_to(candidate) for path in needed):
            ns.mount("range", candidate, "tmpfs", ns.MS_NOSUID | ns.MS_NODEV, "mode=0755")
            break
    else:
        raise HostError("range-base", f"none of {', '.join(_BASES)} is free for the range's files")
    for name, mode in (("etc", 0o755), ("home", 0o700), ("tmp", 0o1777), ("world", 0o755)):
        (candidate / name).mkdir()
        (candidate / name).chmod(mode)
    if caller.command_uid is not None:
        os.chown(candidate / "home", caller.command_uid, caller.command_uid)
    return candidate


def _mount_system_folders() -> None:
    ns.mount("proc", "/proc", "proc")
    control_groups = os.open("/sys/fs/cgroup", os.O_PATH)
    with suppress(OSError):  # the old one shows the machine's devices instead of ours, which harms nobody
        ns.mount("sysfs", "/sys", "sysfs")
        ns.bind(f"/proc/self/fd/{control_groups}", "/sys/fs/cgroup", recursive=True)
    os.close(control_groups)


def _mount_names(base: Path, caller: Caller) -> None:
    """Names come from the range alone: our resolv.conf and hosts, and no look-up service of the machine.

    A daemon such as systemd-resolved or nscd answers over a Unix socket, which no network
    namespace stops; so nsswitch.conf says files and dns, and their folders are covered.
    """
    host_name = os.uname().nodename
    texts = {
        "resolv.conf": f"nameserver {NAME_SERVER}\n",
        "hosts": f"127.0.0.1 localhost\n::1 localhost ip6-localhost\n127.0.1.1 {host_name}\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
    }
    if caller.command_uid is not None:
        uid = caller.command_uid
        texts["passwd"] = Path("/etc/passwd").read_text() + f"tester:x:{uid}:{uid}::{base}/home:/bin/sh\n"
        texts["group"] = Path("/etc/group").read_text() + f"tester:x:{uid}:\n"
    for folder in _HIDDEN_SOCKET_FOLDERS:
        if Path(folder).is_dir():
            ns.mount("hidden", folder, "tmpfs", options="mode=0755")
    for name, text in texts.items():
        (base / "etc" / name).write_text(text)
        _bind_over(base / "etc" / name, Path("/etc") / name)


def _bind_over(source: Path, target: Path) -> None:
    """Bind a file over another, through the link if the other is one (resolv.conf often is)."""
    real = target.resolve()
    if not real.exists():
        with suppress(OSError):
            real.parent.mkdir(parents=True, exist_ok=True)
            real.touch()
    ns.bind(source, real)


def _open_the_way(uid: int) -> None:
    """Let the unprivileged uid reach checkout and interpreter where they are, and nothing beside them.

    A clone below /root (0700) is the usual case. The topmost closed folder is covered by a
    tmpfs, and in it only what is needed is bound again at its own path, so that absolute
    paths in scripts and `pyvenv.cfg` stay right.
    """
    needed = {path for path in (_checkout(), Path(sys.prefix), Path(sys.base_prefix)) if path is not None}
    closed = {top for path in needed if (top := _topmost_closed(path)) is not None}
    for top in closed:
        inside = sorted(path for path in needed if path.is_relative_to(top))
        handles = {path: os.open(path, os.O_PATH) for path in inside}
        ns.mount("way", top, "tmpfs", ns.MS_NOSUID | ns.MS_NODEV, "mode=0755")
        for path, handle in handles.items():
            if not path.exists():
                path.mkdir(parents=True)
                ns.bind(f"/proc/self/fd/{handle}", path, recursive=True)
            os.close(handle)
    for path in needed:
        if not path.stat().st_mode & 0o005 == 0o005:
            raise HostError("checkout-closed", f"{path} is not readable for others", f"chmod -R o+rX {path}")


def _checkout() -> Path | None:
    """The source checkout that this module runs from, if it runs from one."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "pyproject.toml").exists() else None


def _topmost_closed(path: Path) -> Path | None:
    for ancestor in [*reversed(path.parents)]:
        if not ancestor.stat().st_mode & 0o001:
            return ancestor
    return None


# --- world and link ----------------------------------------------------------------------


def _start_world(base: Path) -> None:
    """Make the second namespace, join the two, and wait until all servers listen."""
    sealed_r, sealed_w = os.pipe()
    go_r, go_w = os.pipe()
    ready_r, ready_w = os.pipe()
    pid = os.fork()
    if pid == 0:
        for fd in (sealed_r, go_w, ready_r):
            os.close(fd)
        _exit_with(lambda: _become_world(base, sealed_w, go_r, ready_w))
    for fd in (sealed_w, go_r, ready_w):
        os.close(fd)
    if not os.read(sealed_r, 1):
        raise HostError("range-world", "the world's namespace could not be made")
    # Numbers drawn at random: `sealed_proof` compares them, and the usual ones (2, 2) would fit any pair.
    ours, theirs = (str(1000 + int.from_bytes(os.urandom(3), "big")) for _ in range(2))
    _ip(
        "link",
        "add",
        DEVICE,
        "index",
        ours,
        "type",
        "veth",
        "peer",
        "name",
        DEVICE,
        "index",
        theirs,
        "netns",
        str(pid),
    )
    _configure(HOST_ADDRESSES)
    for address in WORLD_ADDRESSES:
        family = "-6" if ":" in address else "-4"
        _ip(family, "route", "add", "default", "via", address.split("/")[0], "dev", DEVICE)
    os.write(go_w, b"g")
    if os.read(ready_r, 16) != b"ready\n":
        raise HostError("range-world", "the world's servers did not start; the reason stands above")
    for fd in (sealed_r, go_w, ready_r):
        os.close(fd)


def _become_world(base: Path, sealed: int, go: int, ready: int) -> NoReturn:
    ns.set_parent_death_signal(signal.SIGKILL)
    ns.unshare(ns.CLONE_NEWNET)
    os.write(sealed, b"s")
    os.close(sealed)
    if not os.read(go, 1):
        os._exit(1)
    _configure(WORLD_ADDRESSES)
    # In the main table, behind the link's own network: in table `local` even our replies would be local.
    _ip("-4", "route", "add", "local", "default", "dev", "lo", "table", "main")
    _ip("-6", "route", "add", "local", "::/0", "dev", "lo", "table", "main")
    os.set_inheritable(ready, True)
    os.setsid()  # a Ctrl-C for the command must not end the world
    arguments = [sys.executable, "-P", "-m", "stockade.prove.world", str(base / "world"), DEVICE, str(ready)]
    os.execve(
        sys.executable, arguments, {**_environment(), "HOME": str(base / "world"), "PYTHONUNBUFFERED": "1"}
    )


def _configure(addresses: tuple[str, ...]) -> None:
    _ip("link", "set", "lo", "up")
    for address in addresses:
        _ip("addr", "add", address, "dev", DEVICE, *(["nodad"] if ":" in address else []))
    _ip("link", "set", DEVICE, "up")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise HostError(
            "range-link", f"ip {' '.join(arguments)}: {done.stderr.strip()}", "apt install iproute2"
        )


# --- the command ---------------------------------------------------------------------------


def _become_command(base: Path, caller: Caller, command: list[str]) -> NoReturn:
    environment = _environment() | {
        SEALED_VARIABLE: str(base / "world" / "control.sock"),
        "STOCKADE_RANGE_CA": str(base / "world" / "ca" / "ca.pem"),
        "TMPDIR": str(base / "tmp"),
    }
    os.environ.update(environment)
    sealed_proof()
    if caller.command_uid is not None:
        os.setgroups([])
        os.setresgid(caller.command_uid, caller.command_uid, caller.command_uid)
        os.setresuid(caller.command_uid, caller.command_uid, caller.command_uid)
        environment |= {"HOME": str(base / "home"), "USER": "tester", "LOGNAME": "tester"}
        environment |= {"XDG_RUNTIME_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    elif not caller.is_root:
        ns.unshare(ns.CLONE_NEWUSER)
        ns.map_single_id(caller.uid, 0, 0)  # exec then drops every capability, since the uid is not 0
    # What runs behind `&` in a script has two of them ignored, and hands that on.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    program = shutil.which(command[0], path=environment.get("PATH"))
    if program is None:
        raise UserError("command-not-found", f"{command[0]} is not on the PATH")
    os.execve(program, command, environment)


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key.lower() not in _STALE_VARIABLES}


def _free_uid() -> int:
    """A uid that nobody has, so that nothing on the machine belongs to the command."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(_FIRST_FREE_UID, 65000) if uid not in taken)


# --- processes -----------------------------------------------------------------------------


def _exit_with(body: object) -> NoReturn:
    """Run `body` in a forked child and end the process with its result, whatever happens."""
    code = 1
    try:
        assert callable(body)
        code = body()
    except StockadeError as problem:
        code = _report(problem)
    except OSError as problem:
        print(f"range: {problem}", file=sys.stderr)
    finally:
        os._exit(code)


def _wait_for(wanted: int) -> int:
    """Reap every child until `wanted` has ended (as PID 1 we inherit orphans too)."""
    while True:
        with suppress(InterruptedError):
            pid, status = os.waitpid(-1, 0)
            if pid == wanted:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def _report(problem: StockadeError) -> int:
    print(f"range: {problem}", file=sys.stderr)
    if problem.hint:
        print(f"range: {problem.hint}", file=sys.stderr)
    return problem.exit_code


def main(arguments: list[str]) -> int:
    as_user = arguments[:1] == ["--user"]
    rest = arguments[1:] if as_user else arguments
    try:
        return run_in_range(rest[1:] if rest[:1] == ["--"] else rest, as_user)
    except StockadeError as problem:
        return _report(problem)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
