"""A permitted page that redirects to the metadata service.

The first address is judged and permitted; its answer, 302, names the second. A guard that looks
at what was asked for first, and a client that follows, together reach what neither would.

Not covered: following inside the gateway, which follows nothing itself.
"""

ATTACK = {
    "title": "Redirect to the metadata service",
    "group": "redirects",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-601", "R043", "RFC 9110 section 15.4"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["metadata-address"], "entry": ["transparent"], "where": {"control": "recheck-redirects"}}
    ],
}


def attempt(kit):
    from follow import follow

    follow(kit, "http://allowed.test/redirect?to=http://169.254.169.254/latest/meta-data/")
