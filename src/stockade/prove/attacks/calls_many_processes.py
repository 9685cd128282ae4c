"""Processes are started until the machine has no more of them.

A bounded one: it stops at 100, of which the policy permits 60. Whether a start is refused is the
kernel's answer (EAGAIN); each child waits and is ended again.

Not covered: machines where neither a control group nor the rlimit can be set; such a run is refused.
"""

import os
import signal

ATTACK = {
    "title": "More processes than the limit",
    "group": "calls",
    "layer": "supervisor",
    "risk": "boundary-tampering",
    "references": ["ATT&CK T1499.001", "CWE-770", "getrlimit(2) RLIMIT_NPROC"],
    "arrives": [{"what": "state", "name": "many-processes"}],
    "stopped": [{"silent": ["EAGAIN"]}],
    "policy": "limits: {processes: 60}\n",
}

WANTED = 100


def attempt(kit):
    children = []

    def multiply():
        while len(children) < WANTED:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            children.append(pid)

    kit.do("fork", multiply)
    if len(children) == WANTED:
        kit.effect("many-processes")
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    for pid in children:
        os.waitpid(pid, 0)
