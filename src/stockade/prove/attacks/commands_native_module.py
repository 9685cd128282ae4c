"""A native library in the workspace is loaded into the running program.

What `ctypes`, or the import of a native package that was put into the workspace, does: the file is
mapped as code, no program is started, and no list of programs is asked.

Layers: mounts alone; without it the attack arrives.

Not covered: libraries in folders that the policy opens by `exec: libraries`.
"""

import ctypes

import native

ATTACK = {
    "title": "Native library from the workspace",
    "group": "commands",
    "layer": "mounts",
    "risk": "boundary-tampering",
    "references": ["dlopen(3)", "ATT&CK T1129", "CWE-426"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["failed-to-map"]}],
    "needs": ["x86-64"],
}


def attempt(kit):
    path = f"{kit.folder}/own.so"
    with open(path, "wb") as file:
        file.write(native.library_that_writes(kit))
    answers = kit.do("dlopen", lambda: str(ctypes.CDLL(path)) and "loaded")
    if "failed to map segment" in answers.get("detail", ""):
        kit.say({"do": "dlopen", "word": "failed-to-map"})
