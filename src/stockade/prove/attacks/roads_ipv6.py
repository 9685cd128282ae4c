"""The same over IPv6.

Filters that were written for IPv4 alone leave the other family open. The room treats both alike.

Not covered: IPv4 inside IPv6 addresses (group metadata).
"""

ATTACK = {
    "title": "IPv6 beside the IPv4 rules",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 7359", "ATT&CK T1048", "CWE-1327"],
    "arrives": [{"what": "tcp", "address": "2606:2800:220:1::66"}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["transparent"],
            "where": {"address": "2606:2800:220:1::66"},
        }
    ],
}


def attempt(kit):
    kit.talk("2606:2800:220:1::66", 80, kit.get("/six", "[2606:2800:220:1::66]"))
    kit.talk("2606:2800:220:1::66", 443, kit.get("/six", "allowed.test"))
