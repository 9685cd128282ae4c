"""A permitted program starts an unlisted one.

`find -exec`, `tar --checkpoint-action`, `git` aliases, editors and pagers: many harmless programs
start others when asked. Permitting one of them does not permit what it starts, since each execve is
judged by itself.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: what the permitted program does by itself (find can delete).
"""

ATTACK = {
    "title": "Permitted program as a launcher",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["GTFOBins", "ATT&CK T1202", "CVE-2025-54795"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "/bin/sh", "argv": "*echo*"},
        }
    ],
    "policy": "exec: {allow: [find]}\n",
    "needs": ["find"],
}


def attempt(kit):
    kit.run(
        "/usr/bin/find", kit.folder, "-maxdepth", "0", "-exec", "/bin/sh", "-c", kit.witness_script(), ";"
    )
