"""A socket to the hypervisor's side of the machine.

VSOCK addresses lie in no network namespace: a virtual machine's worker would reach services of the
host past every firewall. The family is also given with a higher bit, which the kernel does not read.

Not covered: machines without a VSOCK loopback, where the control cannot be tried.
"""

import os
import struct

import native

ATTACK = {
    "title": "VSOCK",
    "group": "roads",
    "layer": "seccomp",
    "risk": "boundary-tampering",
    "references": ["vsock(7)", "ATT&CK T1611", "CWE-184"],
    "arrives": [{"what": "host", "name": "vsock"}],
    "stopped": [
        {
            "reason": ["socket-family-refused"],
            "entry": ["socket"],
            "layer": ["seccomp"],
            "where": {"call": "socket(AF_VSOCK, *"},
            "seen": ["EAFNOSUPPORT"],
        }
    ],
    "needs": ["vsock-loopback"],
}


def attempt(kit):
    def dial(family):
        fd = native.system_call((41, 198), family, 1, 0)
        address = struct.pack("HHIIB3x", 40, 0, kit.facts["service_port"], 1, 0)  # VMADDR_CID_LOCAL
        native.system_call((42, 203), fd, address, len(address))
        os.write(fd, f"from the worker {kit.word}\n".encode())
        return os.read(fd, 100).decode("latin-1")

    kit.do("vsock", dial, 40)
    kit.do("vsock", dial, 40 | 1 << 32)
