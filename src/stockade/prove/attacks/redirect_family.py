"""A redirect to an IPv6 address.

Rules that were written for names and IPv4 have nothing to say about `http://[2606:…]/`; where
IPv6 has a road of its own, the hop takes it.

Not covered: permitted names with IPv6 answers, which are judged like all answers.
"""

ATTACK = {
    "title": "Redirect to an IPv6 address",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "CWE-918", "R079", "RFC 3986 section 3.2.2"],
    "arrives": [{"what": "tcp", "address": "2606:2800:220:1::66"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"control": "recheck-redirects"}}
    ],
}


def attempt(kit):
    from follow import follow

    follow(kit, "http://allowed.test/redirect?to=http://[2606:2800:220:1::66]/")
