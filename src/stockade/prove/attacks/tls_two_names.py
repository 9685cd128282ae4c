"""Two server names in one hello.

The extension is a list, of which there may be one name of a kind. One reader takes the first,
another the last.

Not covered: the extension twice, which is refused in the same way.
"""

ATTACK = {
    "title": "Two server names in one hello",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "R065", "RFC 6066 section 3"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 443, "text": "evil.test"}],
    "stopped": [{"reason": ["malformed-tls"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    hello = wire.hello(wire.server_names(b"allowed.test", b"evil.test"))
    kit.talk("allowed.test", 443, wire.text(wire.in_records(hello)), patience=0.1)
