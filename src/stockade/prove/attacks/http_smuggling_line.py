"""A request in a field: lines that end in a bare line feed.

For who ends lines at CR LF alone, everything up to the next CR LF is the value of one field. For
who takes LF as well, an empty line ends the head there, and the next request begins.

Not covered: bare CR, which is refused in the same way.
"""

ATTACK = {
    "title": "Smuggled request: bare line feeds",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "CWE-93", "RFC 9112 section 2.2"],
    "arrives": [{"what": "request", "path": "/smuggled"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    hidden = "GET /smuggled HTTP/1.1\r\nConnection: close\r\n\r\n"
    kit.talk("allowed.test", 80, f"GET / HTTP/1.1\r\nHost: allowed.test\r\nX: y\n\n{hidden}")
