"""A hello in many small records and segments.

A handshake message may span records, and a record segments. A reader that looks at the first
packet alone finds no name, and either gives up or lets the rest pass; the server puts it together.

Not covered: hellos beyond 64 records or 32 KiB, which no client sends and which are refused.
"""

ATTACK = {
    "title": "Server name of another site in a split hello",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "R065", "RFC 8446 section 5.1"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    stream = wire.text(wire.in_records(wire.library_hello("evil.test"), 40))
    pieces = [stream[start : start + 70] for start in range(0, len(stream), 70)]
    kit.talk("allowed.test", 443, [], raw=pieces, gap=0.005, patience=0.1)
