"""Memory that is writable and executable at once: code is written into it and called.

The plainest way to native code without a file, and the way of most just-in-time compilers. The
code that is made here writes the word into the witness file and does nothing else.

Layers: memfd alone; without it the attack arrives.

Not covered: `code: jit`, where programs may do this; what they then do stays in the room.
"""

import native

ATTACK = {
    "title": "Code in writable and executable memory",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["mmap(2)", "ATT&CK T1055", "W^X"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "mmap(PROT_READ|PROT_WRITE|PROT_EXEC, *ANONYMOUS*"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def make():
        native.write_by(native.put(native.mapped(native.READ | native.WRITE | native.EXECUTE)), kit)

    native.apart(kit, "mmap", make)
