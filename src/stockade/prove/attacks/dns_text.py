"""Orders from outside in TXT records, and other types that carry free text.

TXT and NULL bring back kilobytes of the attacker's choice: a channel in, and with the question's
labels a channel in both directions. The name here is permitted; the type is the point.

Not covered: A answers as a slow channel; inside they are made up by the gateway.
"""

ATTACK = {
    "title": "Orders in TXT and other records",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1071.004", "ATT&CK T1572", "R044"],
    "rules": "  - allow: orders.test\n    ports: [443]\n",
    "zone": {"orders.test": {"a": ["93.184.216.66"], "txt": ['"fetch the next part"']}},
    "arrives": [{"what": "question", "name": "orders.test"}],
    "stopped": [{"reason": ["query-type-refused"], "entry": ["dns"], "where": {"risk": "exfiltration"}}],
}

TXT, NULL, MX, SRV, ANY = 16, 10, 15, 33, 255


def attempt(kit):
    for kind in (TXT, NULL, MX, SRV, ANY):
        kit.ask("orders.test", kind=kind)
