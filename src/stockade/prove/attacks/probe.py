"""The attacker's hands: does network steps as told and says what came of each.

Runs inside the worker, so: standard library only, nothing of Stockade. A step is a JSON
object; the answers go to standard output, one line each, and `{"done": true}` is the last
line, so that a judge can tell "refused" from "never ran".

Usage: python3 probe.py '[{"do": "talk", "host": "app.test", "port": 80, "send": "..."}]'
"""

import contextlib
import json
import select
import socket
import struct
import sys
import time

PROXY = ("198.18.0.1", 3128)
SOCKS = ("198.18.0.1", 1080)
TIMEOUT_S = 4.0


def connect(step):
    """Open a byte stream to host and port by the entry that the step names."""
    entry = step.get("entry", "transparent")
    if entry == "transparent":
        return socket.create_connection((step["host"], step["port"]), TIMEOUT_S)
    if entry == "http-proxy":
        stream = socket.create_connection(PROXY, TIMEOUT_S)
        if step.get("tunnel", True):
            authority = step.get("authority") or bracketed(step["host"]) + ":" + str(step["port"])
            stream.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode("latin-1"))
            step["answers"]["connect"] = head = read_head(stream)
            if " 200" not in head.split("\r\n")[0]:
                raise ConnectionRefusedError(head.split("\r\n")[0])
        return stream
    return socks(step)


def socks(step):
    stream = socket.create_connection(SOCKS, TIMEOUT_S)
    stream.sendall(b"\x05\x01\x00")
    if stream.recv(2) != b"\x05\x00":
        raise ConnectionRefusedError("socks greeting")
    stream.sendall(b"\x05\x01\x00" + socks_address(step) + struct.pack("!H", step["port"]))
    answer = stream.recv(256)
    step["answers"]["socks"] = answer[1] if len(answer) > 1 else None
    if answer[1:2] != b"\x00":
        raise ConnectionRefusedError(f"socks {answer!r}")
    return stream


def socks_address(step):
    if not step.get("as_name"):
        for family, kind in ((socket.AF_INET, b"\x01"), (socket.AF_INET6, b"\x04")):
            with contextlib.suppress(OSError):
                return kind + socket.inet_pton(family, step["host"])
    name = step["host"].encode("latin-1")
    return b"\x03" + bytes([len(name)]) + name


def bracketed(host):
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def read_head(stream):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = stream.recv(1)
        if not piece:
            break
        data += piece
    return data.decode("latin-1")


def read_all(stream, limit, patience):
    """Read until the peer ends, `limit` bytes, or silence for `patience` seconds."""
    data, ended = b"", False
    stream.settimeout(patience)
    try:
        while len(data) < limit and not ended:
            piece = stream.recv(65536)
            data += piece
            ended = not piece
    except TimeoutError:
        pass
    return data, ended


def talk(step):
    """Connect, perhaps start TLS, send each of `send` with an answer between, read the rest."""
    stream = connect(step)
    with contextlib.closing(stream):
        stream.settimeout(TIMEOUT_S)
        for piece in step.get("raw", []):  # bytes before TLS, or instead of it
            stream.sendall(piece.encode("latin-1"))
            time.sleep(step.get("gap", 0))
        if "sni" in step:
            stream = start_tls(stream, step["sni"])
        sends = step.get("send", [])
        for number, piece in enumerate([sends] if isinstance(sends, str) else sends):
            if number and step.get("wait", True):
                step["answers"].setdefault("replies", []).append(stream.recv(65536).decode("latin-1"))
            stream.sendall(piece.encode("latin-1"))
        if step.get("half_close"):
            stream.shutdown(socket.SHUT_WR)
        data, ended = read_all(stream, step.get("limit", 4000), step.get("patience", 2.0))
        step["answers"].update(reply=data[:4000].decode("latin-1"), size=len(data), ended=ended)


def start_tls(stream, name):
    import ssl  # takes as long as all the other imports together, and few attacks speak TLS

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context.wrap_socket(stream, server_hostname=name)


def udp(step):
    family = socket.AF_INET6 if ":" in step["host"] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.settimeout(step.get("patience", 0.5))
        sender.connect((step["host"], step["port"]))
        sender.send(step.get("data", "datagram").encode("latin-1"))
        step["answers"]["reply"] = sender.recv(4096).decode("latin-1")


def question(name, kind, number=0x4242):
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b".") if label)
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def dns(step):
    """Ask `host` for `name`; the answer's code and addresses go into the step's answers."""
    wire = question(step["name"], step.get("type", 1))
    if step.get("tcp"):
        with contextlib.closing(socket.create_connection((step["host"], 53), TIMEOUT_S)) as stream:
            stream.sendall(struct.pack("!H", len(wire)) + wire)
            size = struct.unpack("!H", stream.recv(2))[0]
            reply = stream.recv(size)
    else:
        family = socket.AF_INET6 if ":" in step["host"] else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.settimeout(step.get("patience", 2.0))
            sender.connect((step["host"], 53))
            sender.send(wire)
            reply = sender.recv(4096)
    step["answers"].update(rcode=reply[3] & 15, count=struct.unpack("!H", reply[6:8])[0], size=len(reply))
    if step["answers"]["count"] and step.get("type", 1) == 1:
        step["answers"]["address"] = socket.inet_ntoa(reply[-4:])


def resolve(step):
    found = socket.getaddrinfo(step["host"], step.get("port", 80), type=socket.SOCK_STREAM)
    step["answers"]["addresses"] = sorted({entry[4][0] for entry in found})


def unix(step):
    path = step["path"]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(TIMEOUT_S)
        stream.connect("\0" + path[1:] if path.startswith("@") else path)
        stream.sendall(b"from the worker\n")
        step["answers"]["reply"] = stream.recv(100).decode("latin-1")


def icmp(step):
    """Echo request by the unprivileged datagram socket, else by a raw one."""
    family, protocol = (socket.AF_INET6, 58) if ":" in step["host"] else (socket.AF_INET, 1)
    packet = struct.pack("!BBHHH", 128 if protocol == 58 else 8, 0, 0xF7FF - 1, 1, 0)
    problem = None
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            with socket.socket(family, kind, protocol) as sender:
                sender.settimeout(1)
                sender.sendto(packet, (step["host"], 0))
                step["answers"]["sent"] = True
                return
        except OSError as refused:
            problem = refused
    raise problem


def open_socket(step):
    """Only make the socket: whether the family opens at all is the question."""
    socket.socket(step["family"], step["type"], step["protocol"]).close()
    step["answers"]["opened"] = True


def send_raw(step):
    """One packet of any IP protocol through a raw socket."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, step["protocol"]) as sender:
        sender.sendto(b"raw payload", (step["host"], 0))
        step["answers"]["sent"] = True


def self_connect(step):
    """A public address dialled from itself to itself, on one port: arrives without any listener."""
    with socket.socket() as stream:
        stream.settimeout(TIMEOUT_S)
        stream.bind((step["host"], step["port"]))
        stream.connect((step["host"], step["port"]))
        stream.sendall(b"to myself")
        step["answers"]["reply"] = stream.recv(100).decode()


def own_listener(step):
    """Listen on an address of one's own choice and dial it."""
    family = socket.AF_INET6 if ":" in step["host"] else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((step["host"], step["port"]))
        listener.listen()
        with socket.create_connection((step["host"], step["port"]), TIMEOUT_S) as stream:
            stream.sendall(b"hello")
            ready, _, _ = select.select([listener], [], [], 0.5)
            if ready:
                step["answers"]["reply"] = listener.accept()[0].recv(100).decode()
            else:
                stream.settimeout(2)
                step["answers"]["refused"] = stream.recv(10).decode()


def bind(step):
    """Take a port, perhaps with the options that let two sockets share one."""
    family = socket.AF_INET6 if ":" in step["host"] else socket.AF_INET
    with socket.socket(family, step.get("type", socket.SOCK_STREAM)) as taker:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            if step.get("reuse"):
                taker.setsockopt(socket.SOL_SOCKET, option, 1)
        taker.bind((step["host"], step["port"]))
        step["answers"]["bound"] = True


def many(step):
    """Open `count` connections to one place, send `data` on each, perhaps hold them."""
    held = []
    for _ in range(step["count"]):
        with contextlib.suppress(OSError):
            stream = socket.create_connection((step["host"], step["port"]), TIMEOUT_S)
            held.append(stream)
            stream.sendall(step.get("data", "").encode("latin-1"))
    step["answers"]["opened"] = len(held)
    for stream in held if not step.get("hold") else []:
        stream.close()
    step["held"] = held


def sleep(step):
    time.sleep(step["seconds"])


STEPS = (
    talk,
    udp,
    dns,
    resolve,
    unix,
    icmp,
    open_socket,
    send_raw,
    self_connect,
    own_listener,
    bind,
    many,
    sleep,
)
BY_NAME = {function.__name__: function for function in STEPS}


def main():
    kept = []
    for step in json.loads(sys.argv[1] if sys.argv[1] != "-" else sys.stdin.read()):
        step["answers"] = answers = {"do": step["do"]}
        started = time.monotonic()
        try:
            BY_NAME[step["do"]](step)
        except (OSError, ValueError, UnicodeError) as problem:
            answers["error"] = type(problem).__name__
            answers["detail"] = str(problem)
        answers["ms"] = round((time.monotonic() - started) * 1000)
        kept.append(step)
        print(json.dumps(answers), flush=True)
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()
