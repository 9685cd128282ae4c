"""The dynamic loader is told to run the program.

`ld.so PROGRAM` maps the program by itself, so the kernel's question about the program is never
asked; a noexec mount is passed by old loaders too. The loader has to be executable for every
dynamic program, so it cannot simply be left out.

Layers: mounts or notify; landlock says nothing about what a loader maps.

Not covered: a loader that the worker brings, which is a copy (commands-copy).
"""

import glob

ATTACK = {
    "title": "Program through the dynamic loader",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["ld.so(8)", "ATT&CK T1218", "CWE-693"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "*/ld-linux*"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    loader = (glob.glob("/lib64/ld-linux-x86-64.so.2") + glob.glob("/lib/ld-linux-aarch64.so.1"))[0]
    kit.run(loader, "/bin/sh", "-c", kit.witness_script())
