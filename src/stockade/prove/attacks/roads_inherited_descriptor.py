"""A connection that the starter has open is inherited by the worker.

Whoever starts `stockade run` may hold open sockets that were not closed on exec: a way out that
needs no connect. All descriptors but the three streams are closed before anything inside runs.

Not covered: the streams themselves; they are pipes of ours, and what is written goes to the caller.
"""

import os

ATTACK = {
    "title": "Inherited connection",
    "group": "roads",
    "layer": "supervisor",
    "risk": "exfiltration",
    "references": ["CWE-403", "CVE-2024-21626", "ATT&CK T1048"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66", "port": 9000}],
    "stopped": [{"silent": ["EBADF"]}],
    "before": ["connection"],
}


def attempt(kit):
    def write(fd):
        return os.write(fd, f"inherited {kit.word}\n".encode())

    kit.do("write", write, kit.facts["inherited"])
    for fd in range(3, 64):
        if os.path.exists(f"/proc/self/fd/{fd}"):
            kit.do("write", write, fd)
