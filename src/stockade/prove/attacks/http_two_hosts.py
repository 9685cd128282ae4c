"""Two fields Host in one request.

One reader takes the first, another the last. The filter finds the permitted one, the server the
other.

Not covered: one Host with two names in it, which is malformed in the same way.
"""

ATTACK = {
    "title": "Two Host fields",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "CWE-444", "RFC 9112 section 3.2"],
    "arrives": [{"what": "request", "text": "Host: evil.test"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    kit.talk("allowed.test", 80, kit.get("/", "allowed.test", headers=["Host: evil.test"]))
