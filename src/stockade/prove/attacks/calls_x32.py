"""A program is started by the x32 calling convention.

The same interrupt-free call as the machine's own, with a bit in its number: a filter that compares numbers
and the architecture, which is the same, takes it for an unknown call and may let it pass.

Layers: seccomp; without it the filter of the eye refuses such numbers as well, and behind it stand
mounts and landlock.

Not covered: kernels that were built without x32, which are most; there the control does not arrive.
"""

ATTACK = {
    "title": "Program by an x32 call",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["seccomp(2) __X32_SYSCALL_BIT", "CVE-2014-0038", "CWE-184"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "number 520 by the x32 convention*"},
        }
    ],
    "policy": "exec: {allow: [python3, ./x32]}\n",
    "before": ["foreign-program"],
    "needs": ["x32-calls"],
}


def attempt(kit):
    kit.run(f"{kit.folder}/x32")
