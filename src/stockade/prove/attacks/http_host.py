"""The field Host names another site than the connection.

Behind one address stand many sites, and the server picks by Host. A connection to the permitted
name that asks for `evil.test` reaches a tenant that nobody permitted.

Not covered: the same inside TLS, where the gateway sees no Host; it still reaches only the
permitted name's address.
"""

ATTACK = {
    "title": "Host of another site on a permitted connection",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "R060", "RFC 9110 section 7.4", "ATT&CK T1090.004"],
    "arrives": [{"what": "request", "name": "evil.test"}],
    "stopped": [
        {"reason": ["name-mismatch"], "entry": ["transparent"], "where": {"control": "name-consistency"}}
    ],
}


def attempt(kit):
    kit.talk("allowed.test", 80, kit.get("/", "evil.test"))
