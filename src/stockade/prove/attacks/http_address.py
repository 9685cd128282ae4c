"""The attacker's address under the permitted name's Host.

The worker dials the attacker's machine and says `Host: allowed.test`. A filter that reads Host,
as many do for plain HTTP, sees a permitted request.

Not covered: a machine of the attacker at the permitted name's own address.
"""

ATTACK = {
    "title": "Attacker's address under a permitted Host",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "CWE-348", "R037", "R076"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "93.184.216.66"}},
    ],
}


def attempt(kit):
    kit.talk("93.184.216.66", 80, kit.get("/", "allowed.test"))
