"""A permitted name that answers well first and badly afterwards.

The attacker's name server gives a public address with no lifetime, then the metadata service.
Whoever resolves once to judge and again to dial has judged one address and dials another; whoever
judges only the first attempt lets the second through.

Not covered: a server at the judged address that passes requests on by itself.
"""

ATTACK = {
    "title": "Rebinding of a permitted name",
    "group": "names",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-350", "CWE-367", "R049", "R052"],
    "rules": "  - allow: turn.test\n    ports: [80]\n",
    "zone": {"turn.test": {"ttl": 0, "sequence": [{"a": ["93.184.216.34"]}, {"a": ["169.254.169.254"]}]}},
    "reachable": ["turn.test"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "turn.test"},
        }
    ],
}


def attempt(kit):
    import time

    kit.talk("turn.test", 80, kit.get("/first", "turn.test"))
    if not kit.is_open:
        time.sleep(1.05)  # the gateway may keep an answer for a second, whatever its lifetime says
    kit.talk("turn.test", 80, kit.get("/latest/meta-data/", "turn.test"))
