"""A chain of redirects whose last hop leaves the list.

Two hops stay on the permitted host, so that a guard which checks the first hop, or the next one,
is satisfied; the third goes elsewhere by a reference without a scheme (`//evil.test/`).

Not covered: chains longer than a client follows.
"""

ATTACK = {
    "title": "Redirect to an unlisted host at the end of a chain",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "CWE-918", "R043", "RFC 3986 section 4.2"],
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "question", "name": "evil.test"}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["transparent"], "where": {"control": "recheck-redirects"}}
    ],
}


def attempt(kit):
    from follow import follow

    follow(kit, "http://allowed.test/redirect?to=/redirect%3Fcode%3D301%26to%3D//evil.test/last")
