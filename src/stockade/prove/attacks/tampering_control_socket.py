"""The run's control socket is asked for the next phase, as its operator would.

The socket has an abstract name that can be guessed: the run's name stands in the worker's environment.
It answers the same user. Inside no Unix socket opens, and the name belongs to another network namespace.

Layers: seccomp, with a record; without it the room, in which the name does not exist.

Not covered: a program of the host that does as the worker asks it.
"""

import json
import os
import socket

ATTACK = {
    "title": "Orders to the run's control socket",
    "group": "tampering",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["CWE-306", "CVE-2020-15257", "unix(7)"],
    "arrives": [{"what": "state", "name": "run-changed"}],
    "stopped": [
        {
            "reason": ["control-socket"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_UNIX, SOCK_STREAM, 0)"},
            "seen": ["EAFNOSUPPORT"],
        }
    ],
    "before": ["other-run"],
}


def attempt(kit):
    def order(run):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(4)
            line.connect(f"\0stockade/control/{run}")
            line.sendall(json.dumps({"do": "phase", "phase": "scoring"}).encode() + b"\n")
            return line.recv(4000).decode()

    kit.do("the other run", order, kit.facts["other_run"])
    if '"ok":true' in kit.do("this run", order, os.environ.get("STOCKADE_RUN", "none")).get("result", ""):
        kit.effect("run-changed")
