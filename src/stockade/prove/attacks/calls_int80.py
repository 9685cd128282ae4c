"""A program is started by the 32-bit calling convention.

On x86-64 the old software interrupt has numbers of its own: a filter that compares 64-bit numbers
takes 11 for another call. A listed program in the workspace starts the shell that way.

Layers: seccomp; without it the filter of the eye refuses such numbers as well, and behind it stand
mounts and landlock.

Not covered: machines without 32-bit calls, where the control does not arrive.
"""

ATTACK = {
    "title": "Program by a 32-bit call",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["seccomp(2) AUDIT_ARCH", "CVE-2009-0835", "CWE-184"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "number 11 of another architecture*"},
        }
    ],
    "policy": "exec: {allow: [python3, ./int80]}\n",
    "before": ["foreign-program"],
    "needs": ["x86-64"],
}


def attempt(kit):
    kit.run(f"{kit.folder}/int80")
