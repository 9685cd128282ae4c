"""A TLS hello without a server name.

The server then answers as its default site, whoever that is. Where nothing can be read, a filter
that lets unknown connections pass has lost.

Not covered: clients that cannot send a name; they cannot be let through safely.
"""

ATTACK = {
    "title": "TLS without a server name",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "R065", "R067", "RFC 6066 section 3"],
    "arrives": [{"what": "request", "name": "evil.test"}],
    "stopped": [{"reason": ["sni-missing"], "entry": ["transparent"]}],
}


def attempt(kit):
    kit.talk("allowed.test", 443, kit.get("/", "evil.test"), sni=None)
