"""A library of the worker's own is loaded into a permitted program.

LD_PRELOAD puts any shared object into every dynamic program that is started, before its own code
runs. The library here is made by hand: its initializer leaves the word.

Layers: mounts alone; without it the attack arrives.

Not covered: libraries of the system, which may be preloaded; they are permitted code.
"""

import native

ATTACK = {
    "title": "Library put into a permitted program (LD_PRELOAD)",
    "group": "commands",
    "layer": "mounts",
    "risk": "boundary-tampering",
    "references": ["ld.so(8) LD_PRELOAD", "ATT&CK T1574.006", "CWE-426"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["cannot-be-preloaded"]}],
    "needs": ["x86-64"],
}


def attempt(kit):
    path = f"{kit.folder}/own.so"
    with open(path, "wb") as file:
        file.write(native.library_that_writes(kit))
    answers = kit.run("/usr/bin/python3", "-c", "1", env={"LD_PRELOAD": path})
    if "cannot be preloaded" in answers.get("out", ""):
        kit.say({"do": "preload", "word": "cannot-be-preloaded"})
