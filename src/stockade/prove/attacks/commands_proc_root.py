"""The same program by a path through /proc.

A list of paths is passed by a second path to the same file: /proc/self/root leads to the root
folder. Stockade compares files (device and inode), not paths.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: bind mounts, which take a right that nobody inside has (calls-mount).
"""

ATTACK = {
    "title": "Unlisted program through /proc/self/root",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["CWE-41", "CVE-2025-55284", "proc_pid_root(5)"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "/proc/self/root/bin/sh"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    kit.shell("/proc/self/root/bin/sh")
