"""A copy of an unlisted program, under a permitted name, in the private /tmp.

Whatever can be written must not be executable: downloads, build products and copies are all the
same here. In the open the copy lies in the workspace.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: a copy that a listed interpreter reads as text.
"""

import native

ATTACK = {
    "title": "Copy of a program in a writable folder",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["CWE-732", "ATT&CK T1036.003", "mount(8) noexec"],
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
    folder = kit.folder if kit.is_open else "/tmp"
    kit.shell(native.copy_of_shell(f"{folder}/python3"))
