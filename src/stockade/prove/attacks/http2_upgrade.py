"""An upgrade to HTTP/2, and in it a request for another site.

`Upgrade: h2c` turns the connection into HTTP/2, whose requests a reader of HTTP/1.1 cannot see.
Each of them has an authority of its own.

Not covered: HTTP/2 inside TLS. The offer alone is harmless and is taken out, so that clients
which always make it get their answer.
"""

ATTACK = {
    "title": "Upgrade to HTTP/2 in clear text",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "CWE-441", "RFC 7540 section 3.2"],
    "arrives": [{"what": "request", "text": "PRI * HTTP/2.0"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    upgrade = f"GET / HTTP/1.1\r\nHost: allowed.test\r\n{offer}"
    kit.talk("allowed.test", 80, [upgrade, wire.text(wire.h2_request("evil.test"))], patience=0.2)
