"""The same through the newer call with a protection key.

pkey_mprotect(2) with the key -1 is mprotect under another number; a filter that lists the old
call alone is passed.

Layers: memfd alone; without it the attack arrives.

Not covered: calls that are newer than the filter's table, which get ENOSYS.
"""

import native

ATTACK = {
    "title": "Made executable by pkey_mprotect",
    "group": "commands",
    "layer": "memfd",
    "risk": "boundary-tampering",
    "references": ["pkey_mprotect(2)", "CWE-184"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["code-in-memory"],
            "entry": ["exec"],
            "layer": ["memfd"],
            "where": {"call": "pkey_mprotect(*PROT_EXEC*"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def make():
        at = native.put(native.mapped(native.READ | native.WRITE))
        native.system_call((329, 288), at, native.PAGE, native.READ | native.EXECUTE, -1)
        native.write_by(at, kit)

    native.apart(kit, "pkey_mprotect", make)
