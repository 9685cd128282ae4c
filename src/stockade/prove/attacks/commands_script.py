"""A script of the worker's own whose first line names an unlisted interpreter.

The kernel starts the interpreter by itself; whoever judges only the name that was called sees a
harmless file in the workspace.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: a script for a listed interpreter, called as an argument of it: that is what it is listed for.
"""

import os

ATTACK = {
    "title": "Script with an unlisted interpreter",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["execve(2) interpreter scripts", "CWE-78"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "*/tool.sh"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    path = f"{kit.folder}/tool.sh"
    with open(path, "w") as file:
        file.write(f"#!/bin/sh\n{kit.witness_script()}\n")
    os.chmod(path, 0o755)
    kit.run(path)
