"""The room and its filter: which sockets can be made, where packets end, what is counted."""

from __future__ import annotations

import os
import re

import pytest
from kernel_steps import IS_ROOT, Contained

# --- families and protocols ------------------------------------------------------------------

SOCKETS = """
import ctypes, errno, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
for text in sys.argv[1:]:
    family, kind, protocol = (ctypes.c_ulong(int(word, 0)) for word in text.split(","))
    fd = libc.syscall(int(sys.argv[0], 0) if sys.argv[0].isdigit() else 41, family, kind, protocol)
    print(text, "made" if fd >= 0 else errno.errorcode[ctypes.get_errno()])
    if fd >= 0:
        __import__("os").close(fd)
"""
HIGH = 1 << 32
NEEDED = {
    "unix stream": (1, 1, 0),
    "unix datagram": (1, 2, 0),
    "tcp": (2, 1, 0),
    "tcp, named": (2, 1, 6),
    "tcp6, close-on-exec and non-blocking": (10, 1 | 0o2000000 | 0o4000, 6),
    "udp": (2, 2, 17),
    "udp6": (10, 2, 0),
    "route netlink": (16, 3, 0),
}
REFUSED = {
    "vsock": (40, 1, 0, "EAFNOSUPPORT"),
    "vsock with a high bit, which the kernel ignores": (40 | HIGH, 1, 0, "EAFNOSUPPORT"),
    "packet": (17, 3, 0x0300, "EAFNOSUPPORT"),
    "xdp": (44, 3, 0, "EAFNOSUPPORT"),
    "alg": (38, 5, 0, "EAFNOSUPPORT"),
    "bluetooth": (31, 3, 1, "EAFNOSUPPORT"),
    "raw": (2, 3, 1, "EPROTONOSUPPORT"),
    "raw with a high bit": (2, 3 | HIGH, 1, "EPROTONOSUPPORT"),
    "ping": (2, 2, 1, "EPROTONOSUPPORT"),
    "ping6": (10, 2, 58, "EPROTONOSUPPORT"),
    "mptcp": (2, 1, 262, "EPROTONOSUPPORT"),
    "udp-lite": (2, 2, 136, "EPROTONOSUPPORT"),
    "sctp": (2, 1, 132, "EPROTONOSUPPORT"),
    "the obsolete packet type": (2, 10, 3, "EPROTONOSUPPORT"),
    "netfilter netlink": (16, 3, 12, "EPROTONOSUPPORT"),
    "sock_diag netlink": (16, 3, 4, "EPROTONOSUPPORT"),
    "audit netlink with a high bit": (16, 3, 9 | HIGH, "EPROTONOSUPPORT"),
}
x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the call number above is x86-64's")


@x86
def test_socket_families_are_an_allow_list(contained: Contained) -> None:
    asked = [",".join(map(hex, values[:3])) for values in (*NEEDED.values(), *REFUSED.values())]
    expected = ["made"] * len(NEEDED) + [values[3] for values in REFUSED.values()]
    result = contained.python(SOCKETS, *asked, options=("--unix-sockets",))
    assert [line.split()[1] for line in result.out.splitlines()] == expected
    without = contained.python(SOCKETS, *asked)
    assert [line.split()[1] for line in without.out.splitlines()] == ["EAFNOSUPPORT"] * 2 + expected[2:]


@x86
def test_f12_vsock_opens_without_the_filter_even_for_an_ordinary_user(contained: Contained) -> None:
    # The control: this family is outside every namespace that the room is made of.
    asked = ["0x28,0x1,0x0", hex(40 | HIGH) + ",0x1,0x0"]
    outside = contained.plainly(SOCKETS, *asked).out
    if "made" not in outside:
        pytest.skip("this kernel has no VSOCK")
    unfiltered = contained.python(SOCKETS, *asked, options=("--without-layer", "seccomp"))
    assert unfiltered.out.count("made") == 2
    assert contained.python(SOCKETS, *asked).out.count("made") == 0
    assert contained.facts["facts"]["layers_off"] == []


URING = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
params = ctypes.create_string_buffer(120)
print(libc.syscall(425, 4, params) >= 0, ctypes.get_errno())
"""


def test_r125_io_uring_is_refused_as_if_the_kernel_had_none(contained: Contained) -> None:
    if not contained.plainly(URING).out.startswith("True"):
        pytest.skip("this kernel has no io_uring")
    assert contained.python(URING).out == "False 38\n"  # ENOSYS: programs fall back


FOREIGN = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
print("x32", libc.syscall(0x40000000 | 41, 2, 1, 0), ctypes.get_errno())
# mov eax, 359 (i386 socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; ret
code = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
sys.stdout.flush()
print("int80", call())
"""


@x86
def test_r126_other_call_conventions_are_refused(contained: Contained) -> None:
    # ENOSYS for both, and the program goes on.
    result = contained.python(FOREIGN)
    assert (result.out, result.code) == ("x32 -1 38\nint80 -38\n", 0)
    # The control: without the filter the 32-bit call makes a socket.
    bare = ("--without-layer", "seccomp", "--without-layer", "memfd", "--without-layer", "notify")
    assert re.search(r"^int80 [0-9]+$", contained.python(FOREIGN, options=bare).out, re.M)


# --- where packets end -------------------------------------------------------------------------

REFUSED_UDP = """
import socket, time
def ask(family, address, port):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(3)
    began = time.monotonic()
    try:
        s.connect((address, port)); s.send(b"x"); s.recv(10)
        return "answered"
    except ConnectionRefusedError:
        return "refused" if time.monotonic() - began < 0.5 else "late"
    except OSError as error:
        return type(error).__name__
for address in ("8.8.8.8", "203.0.113.1", "169.254.169.254", "240.0.0.1"):
    print(ask(socket.AF_INET, address, 443))
print(ask(socket.AF_INET6, "2001:4860:4860::8888", 443))
"""


def test_udp_other_than_dns_is_refused_at_once_and_counted(contained: Contained) -> None:
    result = contained.python(REFUSED_UDP)
    assert result.out.split() == ["refused"] * 5
    assert contained.facts["counters"] == {"syn": 0, "dns": 0, "refused": 5, "refused_syn": 0}


CONNECT = """
import socket, sys
for text in sys.argv[1:]:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    s = socket.socket(family); s.settimeout(2)
    try:
        s.connect((text, 443)); print("shook hands")
    except OSError as error:
        print(type(error).__name__)
    s.close()
"""


def test_every_address_ends_in_the_room_and_is_counted(contained: Contained) -> None:
    # F17: the handshake is the room's own; no byte has gone anywhere, since nobody accepts here.
    addresses = [
        "203.0.113.1",
        "10.0.0.1",
        "169.254.169.254",
        "0.1.2.3",
        "240.0.0.1",
        "2001:db8::1",
        "fd00::1",
    ]
    result = contained.python(CONNECT, *addresses)
    assert result.out.splitlines() == ["shook hands"] * len(addresses)
    assert contained.facts["counters"]["syn"] == len(addresses)


FLOOD = """
import socket
held = []
for n in range(5000):
    s = socket.socket(); s.setblocking(False)
    s.connect_ex((f"203.0.{n >> 8}.{n & 255}", 80))
    held.append(s)
    if n % 500 == 499:
        for s in held: s.close()
        held.clear()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(3000):
    u.sendto(b"x" * 200, (f"8.8.{n >> 8}.{n & 255}", 53))
"""


def test_r5_a_flood_that_nobody_serves_is_counted_to_the_last_attempt(contained: Contained) -> None:
    assert contained.python(FLOOD).code == 0
    counters, queues = contained.facts["counters"], contained.facts["queues"]
    assert counters["syn"] >= 5000
    assert counters["syn"] == queues["accepted"] + queues["tcp_drops"] + counters["refused_syn"]
    assert queues["tcp_drops"] > 0  # the backlog of 4096 did overflow
    assert counters["dns"] == 3000 == queues["dns_received"] + queues["dns_drops"]


SELF = """
import socket
def self_connect(address):
    s = socket.socket(); s.settimeout(2)
    s.bind((address, 5000))
    try:
        s.connect((address, 5000)); return "connected"
    except OSError as error:
        return type(error).__name__
print(self_connect("203.0.113.5"))
"""


def test_f15_a_self_connect_on_a_public_address_is_refused_and_counted_apart(contained: Contained) -> None:
    assert contained.python(SELF).out == "ConnectionRefusedError\n"
    counters = contained.facts["counters"]
    assert (counters["syn"], counters["refused_syn"]) == (1, 1)


OWN_SERVERS = """
import socket
for address in ("127.0.0.1", "::1", "127.0.0.53"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family); server.bind((address, 0)); server.listen()
    client = socket.socket(family); client.settimeout(2)
    client.connect(server.getsockname()[:2]); peer, _ = server.accept()
    client.sendall(b"hello"); print(peer.recv(5))
print(socket.getaddrinfo("127.0.0.1", 80, family=socket.AF_INET, flags=socket.AI_ADDRCONFIG)[0][4])
"""


def test_loopback_inside_belongs_to_the_worker(contained: Contained) -> None:
    result = contained.python(OWN_SERVERS)
    assert result.out.splitlines()[:3] == ["b'hello'"] * 3
    assert contained.facts["counters"]["syn"] == 0


def test_f16_addrconfig_look_ups_work(contained: Contained) -> None:
    assert contained.python(OWN_SERVERS).out.splitlines()[3] == "('127.0.0.1', 80)"


LOCAL_SERVER = """
import socket, sys
s = socket.socket(); s.settimeout(1)
s.connect(("127.0.0.1", int(sys.argv[1]))); print(s.recv(10))
"""


def test_services_on_the_host_s_loopback_are_not_there(contained: Contained) -> None:
    import socket
    import threading

    server = socket.create_server(("127.0.0.1", 0))
    port = str(server.getsockname()[1])

    def serve() -> None:
        peer, _ = server.accept()
        peer.sendall(b"host")
        peer.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert contained.plainly(LOCAL_SERVER, port).out == "b'host'\n"
    assert "ConnectionRefused" in contained.python(LOCAL_SERVER, port).err
    server.close()


# --- the worker against the room -----------------------------------------------------------------

AGAINST = """
import ctypes, os, socket, subprocess
def tries():
    def bind_capture():
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind(("127.0.0.1", 1))
    def bind_dns():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", 53))
    def mark():
        socket.socket().setsockopt(socket.SOL_SOCKET, 36, 0x53)
    def transparent():
        socket.socket().setsockopt(socket.IPPROTO_IP, 19, 1)
    def freebind_v6():
        socket.socket(socket.AF_INET6).setsockopt(socket.IPPROTO_IPV6, 75, 1)
    def direct():
        s = socket.socket(); s.settimeout(2); s.connect(("127.0.0.1", 1))
    def setns():
        if ctypes.CDLL(None).setns(os.open("/proc/1/ns/net", os.O_RDONLY), 0) < 0:
            raise OSError("setns")
    def unshare():
        if ctypes.CDLL(None).unshare(0x40000000) < 0:
            raise OSError("unshare")
    for action in (bind_capture, bind_dns, mark, transparent, freebind_v6, direct, setns, unshare):
        yield action
for action in tries():
    try:
        action(); print(action.__name__, "done")
    except OSError as error:
        print(action.__name__, "refused")
for text in ("nft flush ruleset", "ip route flush table local", "ip link set lo down"):
    command = text.split()
    print(command[0], "done" if subprocess.run(command, capture_output=True).returncode == 0 else "refused")
s = socket.socket(); s.bind(("0.0.0.0", 8080)); print("ordinary bind done")
"""


def test_the_worker_cannot_take_the_room_apart(contained: Contained) -> None:
    result = contained.python(AGAINST)
    *attacks, ordinary = result.out.splitlines()
    assert len(attacks) == 11
    assert [line for line in attacks if not line.endswith("refused")] == []
    assert ordinary == "ordinary bind done"


SPOOF = """
import socket
s = socket.socket(); s.settimeout(1); s.bind(("169.254.169.254", 0))
s.connect(("203.0.113.1", 80)); print(s.getpeername())
"""


def test_f25_a_chosen_source_address_is_still_counted(contained: Contained) -> None:
    assert contained.python(SPOOF).out == "('203.0.113.1', 80)\n"
    assert contained.facts["counters"]["syn"] == 1


def test_r1_the_room_is_reported_as_it_is(contained: Contained) -> None:
    contained("true")
    facts = contained.facts["facts"]
    assert facts["network"] == "room"
    assert set(facts["namespaces"]) == {"user", "net", "pid", "mnt", "ipc", "uts", "cgroup"}
    assert facts["capabilities"] == "none"
    assert facts["no_new_privileges"] is True
    assert facts["system_call_filter"] == "calls"
    assert facts["commands"] == "any, seen"
    assert facts["exact_count"] is True
    assert facts["worker_uid"] == (65533 if IS_ROOT else os.getuid())


def test_giving_the_room_up_is_possible_loud_and_reported(contained: Contained) -> None:
    # Inside the sealed namespace of the tests: the host's network here leads nowhere either.
    links = "import os; print(len(open('/proc/net/dev').read().splitlines()) - 2)"
    inside = contained.python(links, options=("--without-layer", "room"))
    assert inside.code == 0, inside.err
    assert contained.facts["facts"]["network"] == "host"
    assert contained.facts["facts"]["layers_off"] == ["room"]
    refused = contained("true", options=("--without-layer", "privileges"))
    assert refused.code == 102
    assert "layer-not-removable" in refused.err


@pytest.mark.needs("chromium")
def test_chromium_starts_under_the_filter(contained: Contained) -> None:
    page = contained.work / "page.html"
    page.write_text("<h1 id=x>hello</h1><script>document.title='ran '+(6*7)</script>")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--user-data-dir=/tmp/profile"]
    result = contained("chromium", *flags, f"file://{page}", options=("--unix-sockets",))
    assert "<title>ran 42</title>" in result.out, result.err[-2000:]


@pytest.mark.needs("node")
def test_node_starts_and_serves_itself_under_the_filter(contained: Contained) -> None:
    program = (
        "const s = require('http').createServer((q, r) => r.end('own')).listen(0, async () => {"
        "const r = await fetch(`http://127.0.0.1:${s.address().port}/`); console.log(await r.text());"
        "console.log(Object.keys(require('os').networkInterfaces())); process.exit(0) })"
    )
    assert contained("node", "-e", program).out == "own\n[ 'lo' ]\n"
