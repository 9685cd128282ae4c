"""Another site inside TLS, under an honest server name.

The hello names allowed.test and the request inside another tenant of the same server: fronting as
it is usually meant. Between the two ends of TLS nobody sees the difference.

Not covered: servers that hold the request against the hello, as many content networks do by now.
"""

ATTACK = {
    "title": "Host of another site inside TLS",
    "group": "tls",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-290", "R068", "R171", "ATT&CK T1090.004"],
    "arrives": [{"what": "request", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"]}],
    "not_supported": "needs a gateway that opens TLS; it reaches the permitted name's address and no other",
}


def attempt(kit):
    kit.talk("allowed.test", 443, kit.get("/", "evil.test"), sni="allowed.test")
