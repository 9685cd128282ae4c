"""An encrypted hello under the outer name of a provider.

With Encrypted ClientHello the name that counts is hidden, and the outer one is the provider's:
`cover.test`. A filter that waves through what it cannot read lets any site of the provider pass.

Not covered: an encrypted hello whose outer name is the permitted one; browsers send such a field,
filled at random, in every hello, and nobody on the way can tell the two apart.
"""

ATTACK = {
    "title": "Encrypted ClientHello under another outer name",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 9849 section 5", "R065", "ATT&CK T1090.004"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 443, "text": "cover.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    hello = wire.hello(wire.server_names(b"cover.test"), wire.encrypted_hello())
    kit.talk("allowed.test", 443, wire.text(wire.in_records(hello)), patience=0.1)
