"""A redirect to another port of the permitted host.

The host is right and the port is not: behind it may be an admin page, a cache, another tenant's
service on the same address.

Not covered: other services behind the permitted port.
"""

ATTACK = {
    "title": "Redirect to another port of a permitted host",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "CWE-918", "R055", "R077"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 8080}],
    "stopped": [
        {"reason": ["wrong-port"], "entry": ["transparent"], "where": {"control": "recheck-redirects"}}
    ],
}


def attempt(kit):
    from follow import follow

    follow(kit, "http://allowed.test/redirect?to=http://allowed.test:8080/admin")
