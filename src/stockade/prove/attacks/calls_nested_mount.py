"""A user namespace of one's own, a fresh tmpfs in it, and a program on that.

In a new user namespace a process has all rights over a new mount namespace, and what it mounts
there is not noexec: so a copy of any program runs. In the open this needs no rights, or root.

Layers: seccomp, with a record; without it the sandbox's limit of no user namespaces, in silence.

Not covered: namespaces that the host's administrator hands to the worker; there are none.
"""

import os

import native

ATTACK = {
    "title": "Program on a fresh mount in a nested namespace",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["user_namespaces(7)", "CVE-2022-0185", "CWE-250"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "unshare(*CLONE_NEWUSER*"},
            "seen": ["EPERM"],
        }
    ],
}


def attempt(kit):
    def nest():
        place = f"{kit.folder}/nested"
        os.mkdir(place)
        uid, gid = os.geteuid(), os.getegid()
        native.system_call((272, 97), 0x10000000 | 0x20000)  # CLONE_NEWUSER, CLONE_NEWNS
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        native.checked(native.libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, None), "mount")
        program = native.copy_of_shell(f"{place}/sh")
        os.execv(program, ["sh", "-c", kit.witness_script()])

    native.apart(kit, "unshare", nest)
