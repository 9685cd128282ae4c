"""A tunnel to the permitted name, and a request for another inside it.

CONNECT is judged by its authority; what is said in the tunnel is not, where a proxy only copies
bytes from then on.

Not covered: tunnels that carry TLS, whose hello is judged instead (technique tls-connect).
"""

ATTACK = {
    "title": "Request for another site inside a permitted CONNECT",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-441", "R064", "R171", "RFC 9110 section 9.3.6"],
    "arrives": [{"what": "request", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["http-proxy"], "where": {"host": "evil.test"}}],
}


def attempt(kit):
    kit.talk("allowed.test", 80, kit.get("/", "evil.test"), entry="http-proxy")
