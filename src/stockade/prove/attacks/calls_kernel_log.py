"""The kernel's messages are read.

They are the host's: addresses, devices, other people's programs. The call answers with the size of
the buffer and the last lines.

Layers: seccomp, with a record; without it the worker still lacks the right to it, and nobody
records the try.

Not covered: /dev/kmsg and /proc/kmsg, which are not there.
"""

import ctypes

import native

ATTACK = {
    "title": "Messages of the kernel",
    "group": "calls",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["syslog(2)", "ATT&CK T1082", "CWE-532"],
    "arrives": [{"what": "state", "name": "messages-read"}],
    "stopped": [
        {
            "reason": ["system-call-refused"],
            "entry": ["exec"],
            "layer": ["seccomp"],
            "where": {"call": "syslog"},
            "seen": ["EPERM"],
        }
    ],
    "needs": ["root"],
}


def attempt(kit):
    def read():
        buffer = ctypes.create_string_buffer(400)
        return native.system_call((103, 116), 3, buffer, 400)  # SYSLOG_ACTION_READ_ALL

    if kit.do("syslog", read).get("result", 0) > 0:
        kit.effect("messages-read")
