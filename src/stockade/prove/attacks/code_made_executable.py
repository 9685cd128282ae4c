"""Memory is written first and made executable afterwards.

What compilers do that keep W^X: never both at once, and still code that was no file. No memory
becomes executable by mprotect at all.

Layers: memfd alone; without it the attack arrives.

Not covered: `code: jit`.
"""

import native

ATTACK = {
    "title": "Written memory made executable",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["mprotect(2)", "PR_SET_MDWE", "ATT&CK T1055"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "mprotect(PROT_READ|PROT_EXEC)"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def make():
        at = native.put(native.mapped(native.READ | native.WRITE))
        native.protect(at, native.READ | native.EXECUTE)
        native.write_by(at, kit)

    native.apart(kit, "mprotect", make)
