"""A key is left in a keyring that the worker shares with whoever started it.

Keyrings lie in no namespace of a sandbox: the session's is inherited by every child, so it is a way
for data out, and the starter's keys (Kerberos, encrypted folders) are a way in. The lane looks
into its own session keyring afterwards.

Layers: seccomp alone; without it the attack arrives.

Not covered: keyrings of other users, which the kernel's own permissions guard.
"""

import native

ATTACK = {
    "title": "Key in the starter's keyring",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["keyrings(7)", "add_key(2)", "CWE-668"],
    "arrives": [{"what": "state", "name": "key-left"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "add_key"},
            "seen": ["ENOSYS"],
        }
    ],
    "before": ["keyring"],
}


def attempt(kit):
    def leave():
        name = f"stockade-{kit.word}".encode()
        return native.system_call((248, 217), b"user", name, b"payload", 7, -3)

    kit.do("add_key", leave)
