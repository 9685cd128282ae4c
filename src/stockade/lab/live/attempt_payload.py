"""The worker's hands in a live try: waits for one order, does its steps, says what came of each.

Runs inside the worker: standard library only, nothing of Stockade, and `probe.py` beside it. It is
started beforehand and waits on its standard input, so that a learner does not wait for a start. One order
is all it takes: the next try has another worker.
"""

import contextlib
import errno
import json
import os
import socket
import ssl  # noqa: F401  # here, not when the order is there: it takes as long as a whole try
import subprocess
import sys

import probe

# How long an answer may take. Who says that it is the last request is told by the end of the stream, so the
# longer one costs nothing but where nobody answers.
PATIENCE_S, LAST_PATIENCE_S = 1.0, 4.0
COMMAND_LIMIT_S = 10.0
SHOWN = 400


def say(step, **what):
    print(json.dumps({"step": step, **what}), flush=True)


@contextlib.contextmanager
def told(step, **what):
    """Says how a step ended, also if it failed; what failed ends the order."""
    try:
        yield what
    except (OSError, ValueError, UnicodeError, subprocess.SubprocessError) as problem:
        what["error"] = type(problem).__name__
        what["detail"] = str(problem)[:SHOWN]
        if isinstance(problem, OSError) and problem.errno:
            what["errno"] = errno.errorcode.get(problem.errno, str(problem.errno))
        say(step, **what)
        raise Ended from problem
    say(step, **what)


class Ended(Exception):  # noqa: N818  # no fault: a step was refused, so the next ones make no sense
    """The attempt cannot go on."""


def request(order):
    host, port = order["host"], order["port"]
    answers = order["answers"] = {}
    if order["entry"] == "transparent":
        host = look_up(host, port)
    with told("connect", entry=order["entry"], host=order["host"], address=host, port=port) as what:
        try:
            stream = probe.connect({**order, "host": host})
        finally:
            what.update(answers)
    with contextlib.closing(stream):
        stream.settimeout(probe.TIMEOUT_S)
        if "sni" in order:
            with told("tls", sni=order["sni"]):
                stream = probe.start_tls(stream, order["sni"])
        with told("send", first=order["send"].partition("\r\n")[0][:SHOWN], bytes=len(order["send"])) as what:
            stream.sendall(order["send"].encode("latin-1"))
            is_last = "Connection: close" in order["send"]
            data, ended = probe.read_all(stream, 1 << 20, LAST_PATIENCE_S if is_last else PATIENCE_S)
            what.update(reply=data[:4000].decode("latin-1"), size=len(data), ended=ended)


def look_up(host, port):
    """The address of a name, asked for as every client does; an address is itself."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return host
    with told("name", name=host) as what:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        what["address"] = found[0][4][0]
    return what["address"]


def udp(order):
    host = look_up(order["host"], order["port"])
    order["answers"] = answers = {}
    with told("datagram", host=order["host"], address=host, port=order["port"]) as what:
        try:
            probe.udp({**order, "host": host, "patience": PATIENCE_S})
        finally:
            what.update(answers)


def dns(order):
    order["answers"] = answers = {}
    server = name_server()
    with told("question", name=order["name"], kind=order["kind"], server=server) as what:
        try:
            probe.dns({**order, "host": server})
        finally:
            what.update(answers)


def name_server():
    with open("/etc/resolv.conf") as file:
        for line in file:
            if line.startswith("nameserver"):
                return line.split()[1]
    return "198.18.0.1"


def execute(order):
    argv, more = order["argv"], {}
    if argv[0].startswith("/proc/self/fd/"):
        more["pass_fds"] = (make_nameless_program(int(argv[0].rpartition("/")[2])),)
    environment = {**os.environ, "PATH": f"{os.getcwd()}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    with told("run", argv=argv) as what:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=COMMAND_LIMIT_S, check=False, env=environment, **more,
        )  # fmt: skip
        what.update(code=done.returncode, out=done.stdout[:SHOWN].decode(errors="replace"))


def make_nameless_program(number):
    """A program without a name at this descriptor: in memory, else a file that is unlinked at once."""
    with open("/usr/bin/true", "rb") as file:
        program = file.read()
    try:
        fd = os.memfd_create("tool", 0)
        say("memory file")
    except OSError as problem:
        say("memory file", error=type(problem).__name__, errno=errno.errorcode.get(problem.errno, ""))
        path = "/tmp/nameless"
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o755)
    os.write(fd, program)
    if os.path.exists("/tmp/nameless"):
        os.close(fd)
        fd = os.open("/tmp/nameless", os.O_RDONLY)
        os.unlink("/tmp/nameless")
    os.dup2(fd, number, inheritable=True)
    return number


def unix(order):
    with told("socket", what=order["path"]) as what:
        order["answers"] = what
        probe.unix(order)


def icmp(order):
    with told("socket", what=f"icmp to {order['host']}") as what:
        order["answers"] = what
        probe.icmp(order)


def vsock(order):
    with told("socket", what=f"vsock to {order['context']} port {order['port']}") as what:
        with socket.socket(order["family"], socket.SOCK_STREAM) as stream:
            stream.settimeout(2)
            stream.connect((order["context"], order["port"]))
            stream.sendall(b"from the worker\n")
        what["sent"] = True


DOES = {
    "request": request, "udp": udp, "dns": dns, "exec": execute, "unix": unix, "icmp": icmp, "vsock": vsock,
}  # fmt: skip


def main():
    print(json.dumps({"ready": True}), flush=True)
    line = sys.stdin.readline()
    if not line:
        return  # nobody wants anything any more
    for order in json.loads(line):
        with contextlib.suppress(Ended):
            DOES[order["do"]](order)
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()
