"""The attacker's address under the permitted name in the hello.

The worker dials the attacker's machine and names allowed.test in the hello. A filter that judges
by the hello's name, as transparent ones do, sees a permitted connection.

Not covered: a machine of the attacker at the permitted name's own address.
"""

ATTACK = {
    "title": "Attacker's address under a permitted server name",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "CWE-348", "R037", "ATT&CK T1090.004"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["transparent"],
            "where": {"address": "93.184.216.66", "port": "443"},
        },
    ],
}


def attempt(kit):
    kit.talk("93.184.216.66", 443, kit.get("/", "allowed.test"), sni="allowed.test")
