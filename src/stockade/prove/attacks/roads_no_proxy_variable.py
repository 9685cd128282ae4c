"""A client that knows of no proxy dials an unlisted name.

The plainest way round a proxy: its variables are not set, or were taken away. There is none to go
round here: every connection of the room ends at the gateway, whatever the client believes.

Not covered: names that are listed; what is sent there is for the rules of the permitted group.
"""

ATTACK = {
    "title": "Dialled directly, without any proxy",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1048", "CVE-2025-66479", "CWE-1327"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    import os

    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    kit.talk("evil.test", 80, kit.get("/direct", "evil.test"))
