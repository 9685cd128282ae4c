"""A FIFO that a program of the host opens in a folder that the worker may read.

Opening a FIFO for writing asks for the right on the file, and a read-only mount does not count for
it: what is written arrives in the host's program. One that is there at the start stops the run; this
one comes later, and Landlock refuses it.

Layers: landlock alone; without it the attack arrives.

Not covered: FIFOs in folders that both sides may write, where the host has put it there itself.
"""

import os

ATTACK = {
    "title": "FIFO of the host in a read-only folder",
    "group": "roads",
    "layer": "landlock",
    "risk": "boundary-tampering",
    "references": ["fifo(7)", "CWE-668"],
    "arrives": [{"what": "state", "name": "fifo-read"}],
    "stopped": [{"silent": ["EACCES"]}],
    "policy": 'files: {read: ["$shared"]}\n',
    "before": ["shared"],
    "stages": ["late-fifo"],
}


def attempt(kit):
    kit.wait_for("late-fifo")

    def write():
        fd = os.open(f"{kit.facts['shared']}/fifo", os.O_WRONLY)
        return os.write(fd, f"{kit.word}\n".encode())

    kit.do("fifo", write)
