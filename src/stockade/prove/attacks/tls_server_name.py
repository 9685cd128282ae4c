"""A TLS hello for another site, on a permitted connection.

Behind one address stand many sites, and the server picks by the name in the hello. Dialled as
the permitted name, the connection ends at another tenant: fronting the other way round.

Not covered: an honest name in the hello and another one inside, which nobody sees without
opening TLS; it still reaches only the permitted name's address.
"""

ATTACK = {
    "title": "Server name of another site on a permitted connection",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "R065", "RFC 6066 section 3", "ATT&CK T1090.004"],
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "tcp", "name": "evil.test"}],
    "stopped": [
        {"reason": ["name-mismatch"], "entry": ["transparent"], "where": {"control": "name-consistency"}}
    ],
}


def attempt(kit):
    kit.talk("allowed.test", 443, kit.get("/", "evil.test"), sni="evil.test")
