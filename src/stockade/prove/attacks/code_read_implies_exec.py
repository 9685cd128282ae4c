"""The process asks for the old personality in which all readable memory is executable.

After READ_IMPLIES_EXEC an ordinary mmap is executable without a word about it, so a filter on
protections sees nothing.

Layers: memfd alone; without it the attack arrives.

Not covered: programs whose file asks for an executable stack; such files are the operator's.
"""

import ctypes

import native

ATTACK = {
    "title": "All memory executable (READ_IMPLIES_EXEC)",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["personality(2)", "CWE-693"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "personality(READ_IMPLIES_EXEC)"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def make():
        native.checked(native.libc.personality(ctypes.c_ulong(0x400000)), "personality")
        native.write_by(native.put(native.mapped(native.READ | native.WRITE)), kit)

    native.apart(kit, "personality", make)
