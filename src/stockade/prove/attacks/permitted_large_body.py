"""A body that is larger than the rule permits, to a permitted place.

The place may take small uploads; a repository or a database is not small. The length stands in the
head, so nothing is passed on.

Not covered: many bodies below the limit (permitted-upload-limit), and bodies inside TLS.
"""

ATTACK = {
    "title": "Body larger than the limit",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1567", "CWE-770"],
    "arrives": [{"what": "request", "name": "paste.test", "path": "/large*"}],
    "stopped": [{"reason": ["body-too-large"], "entry": ["transparent"], "where": {"path": "/large"}}],
    "rules": "  - {proxy: paste.test, ports: [80], protocol: http, methods: [POST], max-body: 1KiB}\n",
    "reachable": ["paste.test"],
}


def attempt(kit):
    kit.talk("paste.test", 80, kit.get("/small", "paste.test", "POST", body="x" * 100))
    kit.talk("paste.test", 80, kit.get("/large", "paste.test", "POST", body="x" * 5000))
