"""A child that is born in a namespace of its own.

clone(2) takes the same flags as unshare(2), beside the signal in their lowest bits; a filter for
unshare alone is passed. What the child gets is looked at: another network namespace.

Layers: seccomp, with a record; without it the sandbox's limit of no user namespaces, in silence.

Not covered: clone3, whose flags lie in memory where no filter can look: it is refused as a whole, with
ENOSYS and without a record, since the C library tries it for every thread.
"""

import os

import native

ATTACK = {
    "title": "Namespace by clone",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["clone(2)", "CWE-184"],
    "arrives": [{"what": "state", "name": "new-namespace"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "clone(*CLONE_NEWUSER*"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    own = os.readlink("/proc/self/ns/net")

    def born():
        pid = native.system_call((56, 220), 0x10000000 | 0x40000000 | 17, 0, 0, 0, 0)
        if pid == 0:
            os._exit(os.readlink("/proc/self/ns/net") != own)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    if kit.do("clone", born).get("result") == 1:
        kit.effect("new-namespace")
