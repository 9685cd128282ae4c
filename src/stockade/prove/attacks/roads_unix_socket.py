"""A Unix socket of the host: a container engine's, a desktop's, an agent's.

Such sockets answer through a read-only view, and who can talk to them can start programs outside.
None is in the view, and none can be dialled, since Unix sockets do not open.

Layers: seccomp, with a record; without it the view, in which the socket is not.

Not covered: `exec: {unix-sockets: true}` and a socket that a program of the host opens in a folder
that the worker sees, later than the start (docs/concepts/seal.md).
"""

ATTACK = {
    "title": "Unix socket of the host",
    "group": "roads",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["CVE-2019-5736", "ATT&CK T1610", "CWE-668"],
    "arrives": [{"what": "host", "name": "unix"}],
    "stopped": [
        {
            "reason": ["control-socket"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_UNIX, SOCK_STREAM, 0)"},
            "seen": ["EAFNOSUPPORT"],
        }
    ],
}


def attempt(kit):
    kit.unix(kit.facts["unix_socket"])
