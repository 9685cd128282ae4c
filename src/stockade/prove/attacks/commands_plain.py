"""A program that the policy does not list, started in the plainest way.

The shell by its own path, as `subprocess` or a build tool starts it. One of three layers is
enough: the noexec mounts, Landlock and the eye each refuse it.

Layers: each of mounts, landlock and notify stops it alone.

Not covered: what a permitted program does; the shell's text handed to a listed interpreter.
"""

ATTACK = {
    "title": "Unlisted program by its path",
    "group": "commands",
    "layer": "notify",
    "risk": "boundary-tampering",
    "references": ["CWE-78", "ATT&CK T1059.004", "execve(2)"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "/bin/sh"},
            "seen": ["EACCES"],
        }
    ],
}


def attempt(kit):
    kit.shell()
