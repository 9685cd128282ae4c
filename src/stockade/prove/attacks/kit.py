"""What an attack has in its hands. Runs inside the worker: standard library only, nothing of Stockade.

Each method does one thing to the outside, prints what came of it as one JSON line, and gives
the same back; an `OSError` is an answer, not an end. So an attack is a list of lines that all
run, whatever is refused on the way.
"""

import contextlib
import ctypes
import errno
import json
import os
import subprocess
import sys
import time

import probe

PATIENCE_S = 1.0
ALLOWED = "allowed.test"


class Kit:
    """Made by `runner.py` from what the lane says.

    Attributes:
        word: The secret word of this execution; a program that arrives writes it, a question carries it.
        facts: Where things of the host are: `host_address`, `loopback_port`, `unix_socket`, `abstract`,
            `neighbour_port`, `ledger`, `policy`, `witness`, …; a thing that is missing is not there today.
        folder: A folder that the worker may write.
        is_open: Nothing of Stockade is in the way (the control).
    """

    def __init__(self, word, facts, folder, is_open):
        self.word = word
        self.facts = facts
        self.folder = folder
        self.is_open = is_open

    # --- the network ------------------------------------------------------------------------

    def get(self, path="/", host=ALLOWED, method="GET", headers=(), body=""):
        """The text of a request (for `talk`); each header is one line."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", body])

    def talk(self, host, port, send, **more):
        """Open a byte stream, send, read the answer. `send` may be a list, with an answer between.

        `entry`: `transparent` (default), `http-proxy` or `socks5`; `sni`: speak TLS and name this host (None:
        no name); `raw`: pieces sent before TLS or instead of it; `tunnel=False`: no CONNECT.
        In the open there is no proxy of the room: such an attack has to say what it does instead.
        """
        return self._step("talk", host=host, port=port, send=send, **{"patience": PATIENCE_S, **more})

    def udp(self, host, port, data=None, **more):
        return self._step("udp", host=host, port=port, data=data or f"datagram {self.word}", **more)

    def ask(self, name, server="9.9.9.9", kind=1, **more):
        """A DNS question (kind 1 A, 16 TXT, 28 AAAA, …) to a server; `tcp=True` over TCP."""
        return self._step("dns", host=server, name=name, type=kind, **{"patience": PATIENCE_S, **more})

    def resolve(self, host, port=80):
        return self._step("resolve", host=host, port=port)

    def unix(self, path):
        """Say a line to a Unix socket; `@name` is an abstract one."""
        return self._step("unix", path=path)

    def icmp(self, host):
        return self._step("icmp", host=host)

    def raw(self, host, protocol):
        """One packet of any IP protocol through a raw socket."""
        return self._step("send_raw", host=host, protocol=protocol)

    def socket(self, family, kind, protocol=0):
        """Only make it."""
        return self._step("open_socket", family=family, type=kind, protocol=protocol)

    def _step(self, do, **step):
        return self.say(self._take_step(do, **step))

    def _take_step(self, do, **step):
        step["answers"] = answers = {"do": do, "to": describe_target(step)}
        with self._caught(answers):
            probe.BY_NAME[do](step)
        return answers

    # --- commands ----------------------------------------------------------------------------

    def witness_script(self):
        """A shell line that leaves the word where the witness looks: proof that a program ran."""
        return f"echo {self.word} >> {self.facts['witness']}"

    def run(self, *argv, stdin=b"", **more):
        """Start a program and wait for it, five seconds at most."""
        answers = {"do": "run", "argv": list(argv)}
        with self._caught(answers):
            done = subprocess.run(argv, input=stdin, capture_output=True, timeout=5, check=False, **more)
            answers["code"] = done.returncode
            answers["out"] = (done.stdout + done.stderr)[:300].decode("latin-1")
        return self.say(answers)

    def call(self, function, *arguments):
        """Call a function of libc by name; its result, and the errno where it is negative."""
        answers = {"do": function}
        libc = ctypes.CDLL(None, use_errno=True)
        answers["result"] = result = getattr(libc, function)(*arguments)
        if result < 0:
            answers["errno"] = errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
        return self.say(answers)

    def do(self, name, function, *arguments):
        """Anything else that may be refused: what it returns, if that is JSON, or the error."""
        answers = {"do": name}
        with self._caught(answers):
            answers["result"] = function(*arguments)
        return self.say(answers)

    def shell(self, program="/bin/sh"):
        """Start a shell, by whatever name, that leaves the word."""
        return self.run(program, "-c", self.witness_script())

    def effect(self, name):
        """Vouch for an effect that only this process can see: what the call gave has been used."""
        return self.say({"effect": name})

    # --- with the host ------------------------------------------------------------------------

    def wait_for(self, what):
        """Ask the host to do something (`stages.py`) and wait until it is done."""
        print(json.dumps({"ask": what}), flush=True)
        sys.stdin.readline()

    def allowed(self, when):
        """The permitted request; the lane looks for it in the world."""
        request = self.get(f"/?permitted={when}-{self.word}")
        answers = self._take_step("talk", host=ALLOWED, port=80, send=request, patience=3.0)
        return self.say({"allowed": when, **answers})

    def say(self, answers):
        print(json.dumps(answers), flush=True)
        return answers

    @contextlib.contextmanager
    def _caught(self, answers):
        started = time.monotonic()
        try:
            yield
        except (OSError, ValueError, UnicodeError, subprocess.SubprocessError) as problem:
            answers["error"] = type(problem).__name__
            answers["detail"] = str(problem)[:300]
            if isinstance(problem, OSError) and problem.errno:
                answers["errno"] = errno.errorcode.get(problem.errno, str(problem.errno))
        answers["ms"] = round((time.monotonic() - started) * 1000)


def describe_target(step):
    """Where a step goes, for whoever reads what the payload did."""
    words = [f"{step[key]}" for key in ("host", "path", "name") if step.get(key)]
    words += [
        f"{key} {step[key]}" for key in ("port", "protocol", "entry", "sni") if step.get(key) is not None
    ]
    sent = step.get("send") or ""
    first = sent if isinstance(sent, str) else sent[0]
    return " ".join([*words, first.partition("\r\n")[0][:100]]).strip()


def find(name):
    """A program's path in the usual folders; the attack ends with an error if it is not there."""
    for folder in ("/usr/bin", "/bin", "/usr/sbin"):
        if os.path.exists(f"{folder}/{name}"):
            return f"{folder}/{name}"
    raise FileNotFoundError(name)
