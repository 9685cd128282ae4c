"""The world of the range: the servers of a small internet, in one process.

Runs in the sealed *world* namespace, where every address is local, so a server bound to
the wildcard answers for all of them and `getsockname()` tells which one was dialled.
One thread per connection: some hundreds at once are plenty here, and blocking code
keeps the wrong-on-purpose answers readable. Besides the servers a tap on the link
notes each TCP SYN and each packet of any other protocol, for ports where nobody listens.

Usage: ``python -m stockade.prove.world FOLDER DEVICE READY_FD``.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from stockade.prove import world_dns
from stockade.prove.authority import Authority
from stockade.prove.sealed import probe_links
from stockade.prove.world_http import Site, create_git_repository
from stockade.prove.world_log import NAME_SERVERS, Arrival, WorldLog
from stockade.prove.world_proxy import (
    HTTP_PROXY_PORT,
    PROXY_ADDRESS,
    SOCKS_PORT,
    serve_http_proxy,
    serve_socks,
)

HTTP_PORTS = (80, 2375, 3000, 5000, 8000, 8080, 8081, 8899, 9100, 11434)
TLS_PORTS = (443, 853, 8443)
ECHO_PORTS = (9000, 4444, 5432)
BANNERS = {
    22: b"SSH-2.0-OpenSSH_9.2p1 Range\r\n",
    25: b"220 mail.range.test ESMTP\r\n",
    587: b"220 range ESMTP\r\n",
}
UDP_PORTS = (53, 67, 123, 161, 443, 500, 1900, 3478, 4433, 4500, 5353, 8125, 9000, 51820)

_CONNECTION_TIMEOUT_S = 120.0
_IPV6_RECVPKTINFO, _IPV6_PKTINFO = 49, 50
_IP_PKTINFO = 8

Handler = Callable[["World", socket.socket, Arrival], None]


class Tallied(socket.SocketIO):
    """Reads from a connection and notes each byte of it at the arrival."""

    def __init__(self, connection: socket.socket, arrival: Arrival) -> None:
        super().__init__(connection, "r")
        self._arrival = arrival

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        if count:
            self._arrival.note_bytes(bytes(memoryview(buffer)[:count]))
        return count


class World:
    """Servers, log and control socket; `start` returns when all of them listen."""

    def __init__(self, folder: Path, device: str) -> None:
        self.log = WorldLog()
        self.zone = world_dns.Zone()
        self.authority = Authority(folder / "ca")
        self.site = Site(folder)
        self._folder = folder
        self._device = device
        self._swallowed: list[str] = []
        self._doors = select.poll()
        self._unread: dict[socket.socket, Arrival] = {}

    def start(self) -> None:
        self.authority.create()
        create_git_repository(self.site.git_root)
        for family in (socket.AF_INET, socket.AF_INET6):
            self._start_tcp(family)
            for port in UDP_PORTS:
                server = _udp_socket(family, port)
                self._doors.register(server, select.POLLIN)
                _spawn(self._receive_datagrams, family, server)
        _spawn(self._tap)
        _spawn(self._control, _control_socket(self._folder / "control.sock"))

    # --- TCP -------------------------------------------------------------------------

    def _start_tcp(self, family: int) -> None:
        plan: dict[int, Handler] = dict.fromkeys(HTTP_PORTS, serve_http)
        plan |= dict.fromkeys(TLS_PORTS, serve_tls) | dict.fromkeys(ECHO_PORTS, serve_echo)
        plan |= dict.fromkeys(BANNERS, serve_banner) | {53: serve_dns}
        plan |= dict.fromkeys((HTTP_PROXY_PORT, SOCKS_PORT), serve_proxy)
        for port, handler in plan.items():
            listener = _tcp_listener(family, port)
            self._doors.register(listener, select.POLLIN)
            _spawn(self._accept, listener, handler)

    def _accept(self, listener: socket.socket, handler: Handler) -> None:
        while True:
            connection, source = listener.accept()
            address, port = connection.getsockname()[:2]
            arrival = self.log.open("tcp", address, port, source[0])
            self._unread[connection] = arrival
            _spawn(self._serve, connection, arrival, handler)

    def _serve(self, connection: socket.socket, arrival: Arrival, handler: Handler) -> None:
        connection.settimeout(_CONNECTION_TIMEOUT_S)
        try:
            handler(self, connection, arrival)
            arrival.closed = "done"
        except (OSError, ValueError) as problem:
            arrival.closed = type(problem).__name__
        finally:
            self._unread.pop(connection, None)
            with suppress(OSError):
                connection.close()

    def wrap_tls(self, connection: socket.socket, arrival: Arrival) -> ssl.SSLSocket:
        """Handshake with a certificate for whatever name the client asks; the name is noted."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])

        def choose(handshake: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
            arrival.sni = name
            handshake.context = self.authority.context_for(name or arrival.address)

        context.sni_callback = choose
        return context.wrap_socket(connection, server_side=True)

    # --- UDP and the tap ---------------------------------------------------------------

    def _receive_datagrams(self, family: int, server: socket.socket) -> None:
        while True:
            data, ancillary, _, source = server.recvmsg(65535, 256)
            address = _asked_address(ancillary)
            port = server.getsockname()[1]
            arrival = self.log.open("udp", address, port, source[0])
            arrival.note_bytes(data)
            if port == 53 and address in NAME_SERVERS:
                _spawn(self._answer_dns, family, server, data, address, source)

    def _answer_dns(self, family: int, server: socket.socket, data: bytes, address: str, source: Any) -> None:
        response = world_dns.answer(self.zone, data, "udp", address)
        if response is None:
            return
        packed = socket.inet_pton(family, address)
        if family == socket.AF_INET:
            control = (socket.IPPROTO_IP, _IP_PKTINFO, struct.pack("=i4s4s", 0, packed, b""))
        else:
            control = (socket.IPPROTO_IPV6, _IPV6_PKTINFO, struct.pack("=16si", packed, 0))
        with suppress(OSError):
            server.sendmsg([response], [control], 0, source)

    def _tap(self) -> None:
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
        _attach_filter(tap, _TAP_FILTER)
        tap.bind((self._device, 0x0003))
        while True:
            frame, link = tap.recvfrom(2048)
            if link[2] != socket.PACKET_OUTGOING and (packet := parse_packet(frame)) is not None:
                self.log.note_packet(packet)

    # --- control ---------------------------------------------------------------------

    def _control(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            _spawn(self._obey, connection)

    def _obey(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            for line in stream:
                answer = self._do(json.loads(line))
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()

    def _do(self, order: dict[str, Any]) -> Any:
        match order["do"]:
            case "arrivals":
                self._settle()
                return self.log.arrivals(order.get("since", 0))
            case "packets":
                self._settle()
                return self.log.packets()
            case "dns_questions":
                self._settle()
                return self.zone.questions
            case "everything":
                self._settle()
                return [self.log.arrivals(), self.log.packets(), self.zone.questions]
            case "set_dns":
                self.zone.set(order["entries"])
            case "set_pages":
                self.site.pages = order["pages"]
            case "set_redirects":
                self.site.redirects = order["redirects"]
            case "swallow":
                self._swallow(order["addresses"])
            case "reset":
                self._settle()
                self._swallow([])
                self.log.reset()
                self.zone.reset()
                self.site.pages = {}
                self.site.redirects = {}
            case "links":
                return [link.to_json() for link in probe_links()]
        return True

    def _swallow(self, addresses: list[str]) -> None:
        """From now on drop all packets to these addresses, and to no others, without a word."""
        for change, chosen in (("del", self._swallowed), ("add", addresses)):
            for address in chosen:
                subprocess.run(["ip", "route", change, "blackhole", address], capture_output=True, check=True)
        self._swallowed = addresses

    def _settle(self) -> None:
        """Wait until all that the kernel has for us is noted, at most one second.

        What a client has sent is in our sockets' buffers when its system call returns
        (a veth delivers at once), so this lets our own threads catch up, however busy the machine is:
        nobody waits at a door, no connection has first bytes that were not read, and nothing new was noted.
        """
        before = None
        for _ in range(100):
            now = self.log.size()
            if now == before and not self._doors.poll(0) and not self._has_unread():
                return
            before = now
            time.sleep(0.01)

    def _has_unread(self) -> bool:
        untouched = [one for one, arrival in list(self._unread.items()) if not arrival.bytes]
        readable = select.poll()
        for connection in untouched:
            with suppress(ValueError, OSError):  # closed meanwhile
                readable.register(connection, select.POLLIN)
        return bool(readable.poll(0))


def serve_http(world: World, connection: socket.socket, arrival: Arrival) -> None:
    world.site.serve(_reader(connection, arrival), connection, arrival)


def serve_tls(world: World, connection: socket.socket, arrival: Arrival) -> None:
    arrival.is_tls = True
    peeked = connection.recv(4096, socket.MSG_PEEK)
    arrival.note_bytes(peeked)
    with world.wrap_tls(connection, arrival) as inner:
        world.site.serve(_reader(inner, arrival), inner, arrival)
        inner.settimeout(0.5)
        inner.unwrap()  # close_notify, without which some clients report a cut answer


def serve_echo(world: World, connection: socket.socket, arrival: Arrival) -> None:
    while data := connection.recv(65536):
        arrival.note_bytes(data)
        connection.sendall(data)


def serve_banner(world: World, connection: socket.socket, arrival: Arrival) -> None:
    connection.sendall(BANNERS[arrival.port])
    _read_to_end(connection, arrival)


def serve_dns(world: World, connection: socket.socket, arrival: Arrival) -> None:
    if arrival.address in NAME_SERVERS:
        world_dns.serve_tcp(world.zone, connection, arrival.address)
    else:
        _read_to_end(connection, arrival)


def serve_proxy(world: World, connection: socket.socket, arrival: Arrival) -> None:
    if arrival.address != PROXY_ADDRESS:
        _read_to_end(connection, arrival)
    elif arrival.port == SOCKS_PORT:
        serve_socks(connection)
    else:
        serve_http_proxy(connection)


def _read_to_end(connection: socket.socket, arrival: Arrival) -> None:
    while data := connection.recv(65536):
        arrival.note_bytes(data)


def _reader(connection: socket.socket, arrival: Arrival) -> BinaryIO:
    return io.BufferedReader(Tallied(connection, arrival), 65536)


def _spawn(target: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=target, args=arguments, daemon=True).start()


def _tcp_listener(family: int, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(("", port))
    listener.listen(1024)
    return listener


def _udp_socket(family: int, port: int) -> socket.socket:
    server = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVPKTINFO, 1)
    else:
        server.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
    server.bind(("", port))
    return server


def _asked_address(ancillary: list[tuple[int, int, bytes]]) -> str:
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            return socket.inet_ntop(socket.AF_INET, data[8:12])
        if (level, kind) == (socket.IPPROTO_IPV6, _IPV6_PKTINFO):
            return socket.inet_ntop(socket.AF_INET6, data[:16])
    return "?"


def _control_socket(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o666)  # the tests may run as another uid; the folder lives in the range's own mount namespace
    listener.listen(64)
    return listener


# --- the tap: classic BPF that passes TCP SYNs and everything that is not TCP ----------

# (code, jump if true, jump if false, value); offsets from the Ethernet header on.
_TAP_FILTER = (
    (0x28, 0, 0, 12),
    (0x15, 0, 4, 0x0800),  # IPv4?
    (0x30, 0, 0, 23),
    (0x15, 0, 9, 6),  # TCP? else keep
    (0xB1, 0, 0, 14),
    (0x05, 0, 0, 4),  # X = header length; to the flags
    (0x15, 0, 7, 0x86DD),  # IPv6? else drop
    (0x30, 0, 0, 20),
    (0x15, 0, 4, 6),  # TCP? else keep
    (0x01, 0, 0, 40),  # X = 40
    (0x50, 0, 0, 27),
    (0x54, 0, 0, 0x12),
    (0x15, 0, 1, 0x02),  # flags: SYN without ACK? else drop
    (0x06, 0, 0, 0x800),
    (0x06, 0, 0, 0),
)
_NEIGHBOR_TYPES = frozenset({130, 131, 132, 133, 134, 135, 136, 137, 143})


def _attach_filter(tap: socket.socket, program: tuple[tuple[int, int, int, int], ...]) -> None:
    """SO_ATTACH_FILTER takes a struct with a pointer, hence ctypes; the kernel copies it at once."""
    packed = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    tap.setsockopt(socket.SOL_SOCKET, 26, struct.pack("@HP", len(program), ctypes.addressof(packed)))


def parse_packet(frame: bytes) -> dict[str, Any] | None:
    """Protocol, destination and size of a frame; `None` for the link's own upkeep (ARP, neighbors)."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind == 0x0800:
        protocol, address, start = (
            frame[23],
            socket.inet_ntop(socket.AF_INET, frame[30:34]),
            14 + (frame[14] & 15) * 4,
        )
    elif kind == 0x86DD:
        protocol, address, start = frame[20], socket.inet_ntop(socket.AF_INET6, frame[38:54]), 54
    else:
        return None
    if protocol == 0 or (protocol == 58 and frame[start] in _NEIGHBOR_TYPES):
        return None
    port = int.from_bytes(frame[start + 2 : start + 4], "big") if protocol in (6, 17, 132, 136) else 0
    names = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}
    packet = {
        "protocol": names.get(protocol, str(protocol)),
        "address": address,
        "port": port,
        "bytes": len(frame) - start,
    }
    return {**packet, "type": frame[start]} if protocol in (1, 58) else packet


def main() -> None:
    folder, device, ready_fd = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    threading.stack_size(256 * 1024)
    World(folder, device).start()
    os.write(ready_fd, b"ready\n")
    os.close(ready_fd)
    threading.Event().wait()


if __name__ == "__main__":
    main()
