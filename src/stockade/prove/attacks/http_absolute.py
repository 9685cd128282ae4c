"""A whole URL in the request line, for another site, on a permitted connection.

A server has to take the URL of the request line and to ignore Host. Who compares Host alone sees
the permitted name and passes a request for the other site on.

Not covered: absolute form at the proxy entry, where it is the ordinary form (technique
http-proxy-host).
"""

ATTACK = {
    "title": "Absolute URL of another site on a permitted connection",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "R060", "RFC 9112 section 3.2.2"],
    "arrives": [{"what": "request", "path": "http://evil.test/*"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"], "where": {"host": "evil.test"}}],
}


def attempt(kit):
    kit.talk("allowed.test", 80, kit.get("http://evil.test/", "allowed.test"))
