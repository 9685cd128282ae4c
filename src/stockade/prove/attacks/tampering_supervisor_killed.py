"""The supervisor is killed while it starts a run, at six different moments.

A worker whose starter died between "started" and "sealed" would run on without any of it: a way that
needs nothing but an out-of-memory kill, or somebody's Ctrl-\\. The first process inside waits for the
order over a lifeline and ends when that closes, so nothing of the worker has run, and nothing is left.

Not covered: moments between those six; tests kill every two milliseconds of the build.
"""

ATTACK = {
    "title": "Supervisor killed while starting",
    "group": "tampering",
    "layer": "supervisor",
    "risk": "boundary-tampering",
    "references": ["CWE-362", "bubblewrap issue 529 (die-with-parent)", "ATT&CK T1562"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "command"}],
    "stopped": [{"silent": ["nothing-left"]}],
    "before": ["left-alone"],
    "stages": ["killed-starts"],
}


def attempt(kit):
    kit.wait_for("killed-starts")
