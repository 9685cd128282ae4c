"""A process of the host is ended by its number.

The worker has its own processes and sees no others, so the number means nothing to it. The
victim here is a process of the lane, the same user's where an ordinary user runs the proof.

Not covered: processes inside; the worker may end its own, and its first one does not take signals.
"""

import os
import signal

ATTACK = {
    "title": "Signal to a process of the host",
    "group": "calls",
    "layer": "view",
    "risk": "boundary-tampering",
    "references": ["pid_namespaces(7)", "kill(2)", "ATT&CK T1489"],
    "arrives": [{"what": "state", "name": "victim-ended"}],
    "stopped": [{"silent": ["ESRCH"]}],
    "before": ["victim"],
}


def attempt(kit):
    victim = kit.facts["victim"]
    kit.do("pidfd_open", lambda: signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGTERM))
    kit.do("kill", os.kill, victim, signal.SIGTERM)
    if not kit.is_open:
        kit.do("kill 1", os.kill, 1, signal.SIGKILL)
