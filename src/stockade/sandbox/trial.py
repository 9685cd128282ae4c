"""What this host can enforce, found out by trying it in throw-away namespaces.

Version numbers and configuration files lie (profiles, containers, distribution
patches); a system call does not. Each trial runs in a forked child that ends with it,
so nothing stays. `stockade doctor` prints the results; a start that fails says the same.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from stockade.errors import StockadeError
from stockade.sandbox import kernel, netlink
from stockade.sandbox.probe import find_tool, probe_interpreter, probe_worker
from stockade.sandbox.room import (
    CAPTURE_PORT,
    GATEWAY_MARK,
    NFLOG_COPY_BYTES,
    NFLOG_GROUP,
    render_addresses,
    render_rules,
)

_SO_MARK, _IP_TRANSPARENT, _IPV6_TRANSPARENT = 36, 19, 75


class Trial(Struct, frozen=True):
    """One thing to try.

    Attributes:
        name: Short word for tables and JSON.
        lost: What cannot be promised without it.
        remedy: How to get it.
        attempt: Tries it and returns a detail; raises `OSError` or `StockadeError` if it does not work.
        is_needed: False for what is used when present.
    """

    name: str
    lost: str
    remedy: str
    attempt: Callable[[], str]
    is_needed: bool = True


class TrialResult(Struct, frozen=True):
    """How a trial ended; `works` with a detail, or not, with what is lost and the remedy."""

    name: str
    works: bool
    is_needed: bool
    detail: str
    lost: str = ""
    remedy: str = ""


def run_trials(trials: Sequence[Trial]) -> list[TrialResult]:
    """Try each; a trial that fails harms none of the others."""
    return [_run(trial) for trial in trials]


def _run(trial: Trial) -> TrialResult:
    try:
        detail = trial.attempt()
    except (OSError, StockadeError) as error:
        detail = str(error)
        remedy = (error.hint if isinstance(error, StockadeError) else None) or trial.remedy
        return TrialResult(trial.name, False, trial.is_needed, detail, trial.lost, remedy)
    return TrialResult(trial.name, True, trial.is_needed, detail)


def in_child(action: Callable[[], str]) -> str:
    """Do something irreversible (change of namespace, uid, filter) in a child, and give its answer.

    Raises:
        OSError: As it was raised in the child.
    """
    answer_in, answer_out = os.pipe()
    pid = kernel.fork_quietly()
    if pid == 0:
        answer: tuple[int, str] = (5, "the child ended early")
        try:
            answer = (0, action())
        except OSError as error:
            answer = (error.errno or 5, error.strerror or str(error))
        finally:
            os.write(answer_out, msgspec.json.encode(answer))
            os._exit(0)
    os.close(answer_out)
    with os.fdopen(answer_in, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    number, detail = msgspec.json.decode(text, type=tuple[int, str])
    if number:
        raise OSError(number, detail)
    return detail


# --- the trials ----------------------------------------------------------------------------


def become_ordinary() -> None:
    """In a child: be who the worker would be."""
    started_as_root, uid, gid = probe_worker()
    if started_as_root:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def _try_bwrap() -> str:
    path = find_tool("bwrap")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return f"{version or 'version unknown'} ({path})"


def _try_userns() -> str:
    def make() -> str:
        become_ordinary()
        kernel.unshare(kernel.CLONE_NEWUSER)
        return "an ordinary user may make one"

    return in_child(make)


def _enter_fresh_network() -> None:
    """A user and a network namespace of our own, as root of both, as the builder is."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def _run_tool(name: str, arguments: list[str], text: str) -> None:
    done = subprocess.run(
        [find_tool(name), *arguments], input=text, text=True, capture_output=True, check=False
    )
    if done.returncode != 0:
        first = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0]
        raise OSError(5, f"{name}: {first}")


def _try_rules(rules: str) -> str:
    find_tool("nft")

    def load() -> str:
        _enter_fresh_network()
        _run_tool("nft", ["-f", "-"], rules)
        return "loaded in a fresh network namespace"

    return in_child(load)


_PLAIN_CHAIN = """table inet t {{
  chain c {{
    type filter hook prerouting priority mangle; policy drop;
    {}
  }}
}}
"""


def _try_nft() -> str:
    return _try_rules(_PLAIN_CHAIN.format("meta mark 0x53 accept"))


def _try_tproxy() -> str:
    rule = f"meta nfproto ipv4 meta l4proto tcp tproxy ip to :{CAPTURE_PORT} accept"
    return _try_rules(_PLAIN_CHAIN.format(rule))


def _try_room_rules() -> str:
    return _try_rules(render_rules(has_ipv6=os.path.exists("/proc/net/if_inet6")))


def _try_nflog() -> str:
    def bind() -> str:
        _enter_fresh_network()
        channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink.NETLINK_NETFILTER)
        channel.settimeout(5)
        netlink.apply_nflog_bind(channel, NFLOG_GROUP, NFLOG_COPY_BYTES)
        return f"group {NFLOG_GROUP} bound"

    return in_child(bind)


def _try_ip() -> str:
    path = find_tool("ip")
    has_ipv6 = os.path.exists("/proc/net/if_inet6")

    def furnish() -> str:
        _enter_fresh_network()
        _run_tool("ip", ["-batch", "-"], "link set lo up\n" + render_addresses(has_ipv6))
        return path + ("" if has_ipv6 else "; this kernel has no IPv6")

    return in_child(furnish)


def _try_sockets() -> str:
    def make() -> str:
        _enter_fresh_network()
        channel = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        channel.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
        channel.setsockopt(socket.SOL_SOCKET, _SO_MARK, GATEWAY_MARK)
        channel.bind(("0.0.0.0", CAPTURE_PORT))
        return "transparent, marked, on a low port"

    return in_child(make)


def _try_worker_uid() -> str:
    started_as_root, uid, _gid = probe_worker()
    if not started_as_root:
        return f"uid {uid}, as started"

    def change() -> str:
        become_ordinary()
        return f"root changes to uid {os.getuid()}"

    return in_child(change)


def _try_idmap() -> str:
    started_as_root, uid, gid = probe_worker()
    if not started_as_root:
        return "not used: not started by root"
    from stockade.sandbox import idmap

    def clone() -> str:
        idmap.make_mounts_private()
        tree = kernel.open_tree(os.getcwd())
        id_map = idmap.open_id_map((os.getuid(), os.getgid()), (uid, gid))
        kernel.set_mount_attributes(tree, kernel.MOUNT_ATTR_IDMAP, id_map)
        return f"works for {os.getcwd()}"

    return in_child(clone)


def _try_stage_python() -> str:
    interpreter, libraries = probe_interpreter()
    done = subprocess.run([interpreter, "-I", "-S", "-c", "import _ctypes"], capture_output=True, check=False)
    if done.returncode != 0:
        raise OSError(5, f"{interpreter} does not start")
    return interpreter + (" (outside /usr: shown in the view)" if libraries else "")


def _try_whole_start() -> str:
    """A real sandbox in an empty folder, sealed, up to the point where a command would start."""
    from stockade.reactor import Reactor
    from stockade.sandbox.plan import SandboxRequest, plan_sandbox
    from stockade.sandbox.probe import probe_host
    from stockade.sandbox.supervise import Sandbox

    with tempfile.TemporaryDirectory() as folder:
        request = SandboxRequest(
            argv=("true",), workspace=Path(folder), run_id=f"doctor-{os.urandom(4).hex()}"
        )
        host = msgspec.structs.replace(probe_host(request), stdin_is_terminal=False)
        reactor = Reactor()
        sandbox = Sandbox(plan_sandbox(request, host), reactor)
        try:
            sandbox.build()
        finally:
            sandbox.close()
            reactor.close()
    return f"sealed after {sandbox.step_times_ms['stage sealed']:.0f} ms"


_USERNS = (
    "sysctl user.max_user_namespaces above 0 and kernel.unprivileged_userns_clone=1; "
    "on Ubuntu an AppArmor profile for bwrap (package apparmor-profiles)"
)
_ROOM_LOST = "the room, so no command starts"

TRIALS = (
    Trial("bwrap", "the sandbox, so no command starts", "install bubblewrap", _try_bwrap),
    Trial("user-namespaces", "the sandbox, so no command starts", _USERNS, _try_userns),
    Trial("worker-uid", "an unprivileged worker", "start as an ordinary user", _try_worker_uid),
    Trial(
        "idmapped-mounts",
        "a workspace that keeps its owner when started by root",
        "start as an ordinary user, or use a file system with id-mapped mounts (ext4, xfs, btrfs)",
        _try_idmap,
    ),
    Trial("stage-python", "the sandbox's first process", "install python3", _try_stage_python),
    Trial("ip", _ROOM_LOST, "install iproute2", _try_ip),
    Trial("nft", _ROOM_LOST, "install nftables; kernel: CONFIG_NF_TABLES_INET", _try_nft),
    Trial("tproxy", _ROOM_LOST, "kernel: CONFIG_NFT_TPROXY (modprobe nft_tproxy)", _try_tproxy),
    Trial("nflog", "the record of refused datagrams", "kernel: CONFIG_NETFILTER_NETLINK_LOG", _try_nflog),
    Trial("room-rules", _ROOM_LOST, "kernel: CONFIG_NFT_LOG, CONFIG_NFT_REJECT_INET", _try_room_rules),
    Trial("room-sockets", _ROOM_LOST, "kernel: CONFIG_NETFILTER, CONFIG_INET", _try_sockets),
)
WHOLE_START = Trial(
    "whole-start",
    "any run",
    "the trials above say which part; in a container, unmask /proc",
    _try_whole_start,
)
