"""A link with the name of a permitted program that leads to another one.

What decides is the file that the kernel would run, so a name of the worker's own choice gains
nothing, in a folder of its own either.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: a link that an earlier run left where the policy's list is resolved (that stops the start).
"""

import os

ATTACK = {
    "title": "Link with a permitted name",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["CWE-59", "symlink(7)"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "*/python3"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    path = f"{kit.folder}/python3"
    os.symlink("/bin/sh", path)
    kit.shell(path)
