"""Something that is no TLS on the TLS port of a permitted host.

A tunnel protocol, a remote shell, bytes of the attacker's own: where the port is right and the
first bytes cannot be read, a filter that gives up lets them through.

Not covered: any protocol inside a proper TLS connection to the permitted host.
"""

ATTACK = {
    "title": "Another protocol on the TLS port",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1571", "ATT&CK T1572", "R067"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 443, "text": "SSH-2.0-range"}],
    "stopped": [{"reason": ["not-the-protocol"], "entry": ["transparent"]}],
}


def attempt(kit):
    kit.talk("allowed.test", 443, "SSH-2.0-range\r\n", patience=0.1)
