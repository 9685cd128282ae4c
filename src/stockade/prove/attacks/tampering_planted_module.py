"""Modules are planted in the workspace that the supervisor of the next run might import.

Python looks beside the program, and in the current folder when it is started in some ways: a file
named as a module of the standard library runs there with the starter's rights. The next run is started in
the workspace; its stage and its supervisor import nothing from there.

Not covered: `python -m stockade` in that folder, which Python itself lets look there; the command does not.
"""

import os

ATTACK = {
    "title": "Planted module for the next run",
    "group": "tampering",
    "layer": "supervisor",
    "risk": "boundary-tampering",
    "references": ["CWE-427", "python -P, -I", "ATT&CK T1574"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["started-clean"]}],
    "stages": ["run-again"],
}


def attempt(kit):
    text = f"open({kit.facts['witness']!r}, 'a').write({kit.word!r})\nraise ImportError('planted')\n"
    names = (
        "ctypes",
        "signal",
        "sitecustomize",
        "usercustomize",
        "site",
        "stockade",
        "msgspec",
        "yaml",
        "encodings",
    )
    for name in names:
        with open(f"{kit.folder}/{name}.py", "w") as file:
            file.write(text)
    kit.wait_for("run-again")
    for name in names:
        os.unlink(f"{kit.folder}/{name}.py")
