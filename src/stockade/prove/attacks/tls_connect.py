"""A tunnel to the permitted name, and a TLS hello for another inside it.

The proxy authorises CONNECT by its authority; the hello that follows names another site of the
same address.

Not covered: CONNECT to another name, which is judged as such.
"""

ATTACK = {
    "title": "Server name of another site inside a permitted CONNECT",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "R065", "R171", "ATT&CK T1090.004"],
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "tcp", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["http-proxy"]}],
}


def attempt(kit):
    kit.talk("allowed.test", 443, kit.get("/", "evil.test"), sni="evil.test", entry="http-proxy")
