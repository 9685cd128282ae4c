"""The room: the worker's network namespace, furnished by a short-lived builder.

Theory. The namespace holds a loopback device and nothing else. A local default route
makes every address arrive; a chain in prerouting hands each TCP connection to one
listener (tproxy) and refuses what is not TCP or DNS. The sockets are made *inside* by
a builder that joins the room's user and network namespaces, and handed out; a socket
stays in the namespace that it was made in, so the worker holds nothing that leads out.

What must stay true:

* The chain's policy is drop; what the gateway's sockets send lives by its mark, which
  the worker cannot set (SO_MARK needs a capability).
* The capture port is below 1024, so the worker cannot bind it, and the listeners are
  bound without REUSEADDR or REUSEPORT, so nobody can bind beside them.
* All is in place before the supervisor gives the stage its order.
* The builder may start when bwrap has brought `lo` up, which is before the stage is
  ready (docs/concepts/boundary.md): bwrap adds 127.0.0.1 itself and would fail with
  EEXIST if we raised `lo` first. Nothing of the worker runs before the order anyway.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from stockade.errors import ContainmentError, HostError, StockadeError
from stockade.sandbox import kernel, netlink

_T = TypeVar("_T")

CAPTURE_PORT = 1
GATEWAY_MARK = 0x53
NFLOG_GROUP = 7
NFLOG_COPY_BYTES = 96
BACKLOG = 4096
# The kernel enters the route of an IPv6 address by a worker of its own (net/ipv6/addrconf.c, also with
# nodad): on a busy machine some milliseconds after `ip` has ended.
ROUTES_TIMEOUT_S = 1.0
ROOM_ADDRESS, ROOM_ADDRESS6 = "198.18.0.1", "fdfe::1"

_IP_TRANSPARENT, _IPV6_TRANSPARENT = 19, 75
_IP_PKTINFO, _IPV6_RECVPKTINFO = 8, 49
_SO_MARK = 36
_SIOCGIFFLAGS, _IFF_UP = 0x8913, 1
_CAP_NET_BIND_SERVICE, _CAP_NET_ADMIN, _CAP_NET_RAW = 10, 12, 13
_LO_TIMEOUT_MS = 5000


class RoomTools(Struct, frozen=True):
    """The two programs that the builder runs."""

    ip: str
    nft: str


class RoomSockets(Struct):
    """What the gateway gets: sockets of the room, non-blocking, and two namespace handles."""

    tcp4: socket.socket
    tcp6: socket.socket | None
    udp4: socket.socket
    udp6: socket.socket | None
    nflog: socket.socket
    netns_fd: int
    userns_fd: int

    def close(self) -> None:
        """Give the room back; what the gateway closed already is left alone."""
        for channel in (self.tcp4, self.tcp6, self.udp4, self.udp6, self.nflog):
            if channel is not None:
                channel.close()
        for name in ("netns_fd", "userns_fd"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)


class RoomCounters(Struct, frozen=True):
    """The kernel's own count of attempts, for `run.completeness`.

    Attributes:
        syn: Connection attempts that reached the hook.
        dns: Datagrams to port 53.
        refused: What was refused and logged to the NFLOG group.
        refused_syn: Connection attempts among `refused` (self-connects, simultaneous opens).
    """

    syn: int
    dns: int
    refused: int
    refused_syn: int


# --- what is put into the room, as text; pure ---------------------------------------------


def render_addresses(has_ipv6: bool) -> str:
    """Input of ``ip -batch``. Two addresses on lo make AI_ADDRCONFIG look-ups work."""
    lines = [f"addr add {ROOM_ADDRESS}/32 dev lo", "route add local default dev lo"]
    if has_ipv6:
        lines += [f"addr add {ROOM_ADDRESS6}/128 dev lo nodad", "route add local ::/0 dev lo"]
    return "\n".join(lines) + "\n"


def render_rules(has_ipv6: bool) -> str:
    """Input of ``nft -f -``; the comments say what breaks without a line."""
    capture6 = f"meta nfproto ipv6 meta l4proto tcp tproxy ip6 to :{CAPTURE_PORT} accept" if has_ipv6 else ""
    return f"""table inet room {{
  counter syn {{ }}
  counter dns {{ }}
  counter refused {{ }}
  counter refused_syn {{ }}
  chain own {{
    tcp dport {CAPTURE_PORT} reject with tcp reset  # the listener is not reached directly
    udp dport 53 counter name dns  # the worker cannot bind it, so this reaches the gateway's sockets
    accept
  }}
  chain pre {{
    type filter hook prerouting priority mangle; policy drop;
    meta mark {GATEWAY_MARK:#x} accept  # all that the gateway's sockets send
    ip daddr 127.0.0.0/8 goto own  # loopback belongs to the worker
    ip6 daddr ::1 ip6 saddr ::1 goto own
    tcp flags & rst == rst accept  # else refused self-connects hang
    icmp type destination-unreachable accept  # else refusals of UDP never arrive
    icmpv6 type destination-unreachable accept
    tcp flags & (fin|syn|rst|ack) == syn counter name syn
    meta nfproto ipv4 meta l4proto tcp tproxy ip to :{CAPTURE_PORT} accept
    {capture6}
    udp dport 53 counter name dns accept  # no tproxy: every address is local
    tcp flags & (fin|syn|rst|ack) == syn counter name refused_syn
    counter name refused log group {NFLOG_GROUP}
    meta l4proto tcp reject with tcp reset
    reject with icmpx type port-unreachable
  }}
}}
"""


# --- what the kernel says is there, as text; pure -----------------------------------------

_RTF_UP_AND_LOCAL = 0x80000001


def missing_routes(fib_trie: str, ipv6_route: str | None) -> list[str]:
    """What of `render_addresses` the kernel does not have; empty if the room is whole.

    Args:
        fib_trie: ``/proc/PID/net/fib_trie`` (kernel, net/ipv4/fib_trie.c): a leaf line with
            the address, below it lines with prefix length, scope and type.
        ipv6_route: ``/proc/PID/net/ipv6_route`` (proc_net(5)): destination and prefix length
            first, flags ninth. None where there is no IPv6.
    """
    found4, leaf = set(), ""
    for line in fib_trie.splitlines():
        match line.split():
            case ["|--", address]:
                leaf = address
            case [length, _scope, "LOCAL"]:
                found4.add(leaf + length)
    missing = [route for route in ("0.0.0.0/0", f"{ROOM_ADDRESS}/32") if route not in found4]
    if ipv6_route is None:
        return missing
    rows = [row for row in map(str.split, ipv6_route.splitlines()) if len(row) > 8]
    found6 = {
        (row[0], int(row[1], 16)) for row in rows if int(row[8], 16) & _RTF_UP_AND_LOCAL == _RTF_UP_AND_LOCAL
    }
    for place, bits in (("::", 0), (ROOM_ADDRESS6, 128)):
        if (socket.inet_pton(socket.AF_INET6, place).hex(), bits) not in found6:
            missing.append(f"{place}/{bits}")
    return missing


# --- the builder: a child of the supervisor that enters the room and ends ------------------


class _StepError(Exception):
    """A step of the builder failed; carries what the supervisor reports."""

    def __init__(self, step: str, number: int, detail: str) -> None:
        super().__init__(step)
        self.report = {"step": step, "errno": number, "detail": detail}


def _enter(pid: int) -> tuple[int, int]:
    """Join the room of a process. The owner of its network namespace is asked of the kernel.

    The process's own user namespace is not the owner: bwrap makes a second one below.
    """
    netns = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    userns = fcntl.ioctl(netns, kernel.NS_GET_USERNS)
    os.set_inheritable(userns, False)
    kernel.setns(userns, kernel.CLONE_NEWUSER)
    kernel.setns(netns, kernel.CLONE_NEWNET)
    return netns, userns


def _wait_for_loopback() -> None:
    """Wait until bwrap has raised lo; the notifications are subscribed to before the first look."""
    events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink.NETLINK_ROUTE)
    events.bind((0, 1))  # RTMGRP_LINK
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    poll = select.poll()
    poll.register(events, select.POLLIN)
    while True:
        answer = fcntl.ioctl(probe, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        if struct.unpack_from("H", answer, 16)[0] & _IFF_UP:
            break
        if not poll.poll(_LO_TIMEOUT_MS):
            raise _StepError("loopback", 110, "bwrap did not bring lo up")
        events.recv(65536)
    events.close()
    probe.close()


def _start_tool(path: str, arguments: list[str], text: str) -> tuple[int, int]:
    """Start a program with this input; gives its pid and a file with what it complains of."""
    given, said = os.memfd_create("input"), os.memfd_create("complaints")
    os.write(given, text.encode())
    os.lseek(given, 0, os.SEEK_SET)
    actions = [
        (os.POSIX_SPAWN_DUP2, given, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, said, 2),
    ]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    try:
        pid = os.posix_spawn(path, [path, *arguments], environment, file_actions=actions)
    except OSError as error:
        raise _StepError(os.path.basename(path), error.errno or 0, str(error)) from error
    finally:
        os.close(given)
    return pid, said


def _finish_tool(name: str, pid: int, said: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    complaint = os.pread(said, 2000, 0).decode(errors="replace").strip()
    os.close(said)
    if code != 0:
        raise _StepError(name, 0, f"exit {code}: {complaint}")


def _set_kernel_switches() -> bool:
    """No SYN cookies, so that the count is exact; says whether that could be set."""
    try:
        with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r+") as switch:
            if int(switch.read()) < 1024:
                switch.write("1024")
        with open("/proc/sys/net/ipv4/tcp_syncookies", "w") as switch:
            switch.write("0")
    except OSError:
        return False  # /proc/sys may be read-only in a container: reported, the count is then inexact
    return True


def _listener(family: socket.AddressFamily) -> socket.socket:
    channel = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    if family == socket.AF_INET6:
        channel.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        channel.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)
    else:
        channel.setsockopt(socket.IPPROTO_IP, _IP_TRANSPARENT, 1)
    channel.setsockopt(socket.SOL_SOCKET, _SO_MARK, GATEWAY_MARK)  # accepted sockets inherit it
    channel.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", CAPTURE_PORT))
    channel.listen(BACKLOG)
    return channel


def _dns_socket(family: socket.AddressFamily) -> socket.socket:
    channel = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    if family == socket.AF_INET6:
        channel.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        channel.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
        channel.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)  # else EINVAL when answering
    else:
        channel.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    channel.setsockopt(socket.SOL_SOCKET, _SO_MARK, GATEWAY_MARK)
    channel.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 53))
    return channel


def _nflog_socket() -> socket.socket:
    channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netlink.NETLINK_NETFILTER)
    netlink.apply_nflog_bind(channel, NFLOG_GROUP, NFLOG_COPY_BYTES)
    channel.setblocking(False)
    return channel


def _step(name: str, action: Callable[[], _T]) -> _T:
    try:
        return action()
    except OSError as error:
        raise _StepError(name, error.errno or 0, error.strerror or str(error)) from error


def _has_ipv6() -> bool:
    try:
        socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return os.path.exists("/proc/sys/net/ipv6")


def _furnish(tools: RoomTools) -> tuple[dict[str, object], list[socket.socket]]:
    """Everything in the room, in the order in which the gateway's side unpacks it."""
    kernel.keep_capabilities_over_exec((_CAP_NET_BIND_SERVICE, _CAP_NET_ADMIN, _CAP_NET_RAW))
    _wait_for_loopback()
    has_ipv6 = _has_ipv6()
    # Both tools at once: neither looks at what the other makes.
    running = [
        ("nft", *_start_tool(tools.nft, ["-f", "-"], render_rules(has_ipv6))),
        ("ip", *_start_tool(tools.ip, ["-batch", "-"], render_addresses(has_ipv6))),
    ]
    no_cookies = _set_kernel_switches()
    families = [socket.AF_INET, socket.AF_INET6] if has_ipv6 else [socket.AF_INET]
    sockets = [_step("listener", partial(_listener, family)) for family in families]
    sockets += [_step("dns-socket", partial(_dns_socket, family)) for family in families]
    sockets.append(_step("nflog", _nflog_socket))
    # The supervisor's own two: counters, and which socket a connection belongs to.
    for family in (netlink.NETLINK_NETFILTER, netlink.NETLINK_SOCK_DIAG):
        sockets.append(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family))
    for name, pid, said in running:
        _finish_tool(name, pid, said)
    return {"ipv6": has_ipv6, "no_cookies": no_cookies}, sockets


def _be_builder(control: socket.socket, tools: RoomTools) -> None:
    """The builder's whole life. It ends by `os._exit` in any case, and with its parent."""
    kernel.die_with_parent(signal.SIGKILL)
    pid = int.from_bytes(control.recv(8), "big")  # an empty message (the supervisor is gone) is 0
    if pid == 0:
        return
    try:
        netns, userns = _step("enter", partial(_enter, pid))
        facts, sockets = _furnish(tools)
        fds = [netns, userns, *(channel.fileno() for channel in sockets)]
        socket.send_fds(control, [msgspec.json.encode(facts)], fds)
    except _StepError as fault:
        control.send(msgspec.json.encode(fault.report))


class RoomBuilder:
    """The supervisor's handle on a builder that was forked beforehand and waits for a process id.

    Forking early takes the cost off the way between bwrap's start and the room. It is
    a plain fork and not a fresh interpreter (10 ms more); the child calls only what is
    imported already and takes no lock that another thread could have held.
    """

    def __init__(self, tools: RoomTools) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = kernel.fork_quietly()
        if self.pid == 0:
            try:
                self._control.close()
                own = theirs.fileno()
                os.closerange(3, own)  # above all the lifelines: EOF must not wait for us
                os.closerange(own + 1, 1 << 20)
                _be_builder(theirs, tools)
            finally:
                os._exit(0)
        theirs.close()

    def fileno(self) -> int:
        return self._control.fileno()

    def begin(self, pid: int) -> None:
        """Name the process whose room is to be furnished."""
        self._control.send(pid.to_bytes(8, "big"))

    def finish(self, timeout_s: float) -> BuiltRoom:
        """Take over what was built.

        Raises:
            ContainmentError: A step failed; it names the step and the errno.
        """
        self._control.settimeout(timeout_s)
        try:
            data, fds, _flags, _address = socket.recv_fds(self._control, 1 << 16, 16)
        except OSError as error:
            raise ContainmentError("room-failed", f"the room's builder gave no answer: {error}") from error
        finally:
            self.close()
        if not fds:
            raise _explain(data)
        return _unpack(msgspec.json.decode(data), fds)

    def close(self) -> None:
        """End the builder, whatever it is doing, and reap it."""
        if self.pid > 0:
            self._control.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = -1


class BuiltRoom(Struct):
    """A finished room: the gateway's part, and the supervisor's own counter and socket-diagnosis sockets."""

    sockets: RoomSockets
    counters: socket.socket
    diagnosis: socket.socket
    has_ipv6: bool
    has_exact_count: bool

    def read_counters(self) -> RoomCounters:
        found = netlink.read_counters(self.counters, "room")
        return RoomCounters(**{name: found[name] for name in RoomCounters.__struct_fields__})


def verify_routes(pid: int, tools: RoomTools, *, has_ipv6: bool) -> None:
    """Make sure that every address arrives in the room of this process, by the kernel's own word.

    An ``ip`` that only says that all is well leaves a room in which each attempt fails before
    it can be counted, and whose record would call itself complete.

    Raises:
        ContainmentError: A route is missing, or cannot be looked up.
    """
    deadline = time.monotonic() + ROUTES_TIMEOUT_S
    while missing := _missing_routes_of(pid, has_ipv6):
        if time.monotonic() < deadline:
            time.sleep(0.002)
            continue
        raise ContainmentError(
            "room-failed",
            f"{tools.ip} ended well, but the room lacks the local routes {', '.join(missing)}",
            f"see what {tools.ip} is; put the one of iproute2 first in PATH",
        )


def _missing_routes_of(pid: int, has_ipv6: bool) -> list[str]:
    try:
        texts = [_read_net(pid, "fib_trie"), _read_net(pid, "ipv6_route") if has_ipv6 else None]
    except OSError as error:
        raise ContainmentError("room-failed", f"the room's routes cannot be read: {error}") from error
    return missing_routes(texts[0] or "", texts[1])


def _read_net(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
        return file.read()


_REMEDIES = {
    "nft": "the kernel needs nf_tables with tproxy and log (CONFIG_NFT_TPROXY, CONFIG_NFT_LOG)",
    "ip": "install iproute2",
    "nflog": "the kernel needs nfnetlink_log (CONFIG_NETFILTER_NETLINK_LOG)",
    "enter": "joining a user namespace of our own was refused: see `stockade doctor`",
}


def _explain(data: bytes) -> StockadeError:
    if not data:
        return ContainmentError("room-failed", "the room's builder ended without an answer")
    report = msgspec.json.decode(data)
    step, number, detail = report["step"], report["errno"], report["detail"]
    named = f"errno {number}, {detail}" if number else detail
    message = f"the room could not be built, step {step}: {named}"
    hint = _REMEDIES.get(step, "`stockade doctor` says what this host can enforce")
    return HostError("room-failed", message, hint)


def _unpack(facts: dict[str, bool], fds: list[int]) -> BuiltRoom:
    netns, userns, *rest = fds
    sockets = [socket.socket(fileno=fd) for fd in rest]
    for channel in sockets:
        channel.setblocking(False)
    diagnosis = sockets.pop()
    counters = sockets.pop()
    counters.setblocking(True)
    nflog = sockets.pop()
    half = len(sockets) // 2
    tcp, udp = sockets[:half], sockets[half:]
    handed = RoomSockets(
        tcp4=tcp[0],
        tcp6=tcp[1] if half > 1 else None,
        udp4=udp[0],
        udp6=udp[1] if half > 1 else None,
        nflog=nflog,
        netns_fd=netns,
        userns_fd=userns,
    )
    return BuiltRoom(handed, counters, diagnosis, facts["ipv6"], facts["no_cookies"])
