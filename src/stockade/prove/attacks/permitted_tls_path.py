"""A permitted host behind TLS, another path of it.

What permitted_path does, where the request is encrypted from end to end: who does not open TLS cannot
see a path. Rules that would need it are refused by lint and by the gateway.

Not covered: everything; it is listed so that nobody takes its absence for protection.
"""

ATTACK = {
    "title": "Path inside TLS",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-319", "RFC 8446"],
    "arrives": [{"what": "request", "name": "docs.test", "path": "/admin*"}],
    "stopped": [{"reason": ["path-not-permitted"], "entry": ["transparent"]}],
    "not_supported": "needs TLS interception",
}


def attempt(kit):
    kit.talk("docs.test", 443, kit.get("/admin", "docs.test"), sni="docs.test")
