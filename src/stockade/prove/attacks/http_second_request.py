"""The second request on a kept connection, for another site.

The first request is judged and permitted. A gateway that copies bytes from then on passes the
second to the same server, under whatever name it has.

Not covered: several requests within TLS, which the gateway does not see.
"""

ATTACK = {
    "title": "Second request on a kept connection",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "R062", "R171"],
    "arrives": [{"what": "request", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["transparent"], "where": {"host": "evil.test"}}],
}


def attempt(kit):
    first = "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
    kit.talk("allowed.test", 80, [first, kit.get("/second", "evil.test")])
