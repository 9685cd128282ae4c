"""The program is told that it is called by a permitted name.

The first word of the arguments is the caller's choice: multi-call programs obey it, and logs and
lists that read it are deceived. Stockade judges the file and writes both down.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: a permitted multi-call program that is asked for another of its parts; it is one program.
"""

import subprocess

ATTACK = {
    "title": "False first argument",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["execve(2)", "ATT&CK T1036.011", "CWE-290"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "/bin/sh", "argv": "*'python3', '-c'*"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    def start():
        words = ["python3", "-c", kit.witness_script()]
        return subprocess.run(words, executable="/bin/sh", timeout=5, check=False).returncode

    kit.do("run", start)
