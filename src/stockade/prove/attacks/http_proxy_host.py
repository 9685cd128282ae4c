"""Two names in one request to the proxy: the permitted one in the URL, another in Host.

The proxy dials what the URL says; the server behind it may look at Host. Each of the two readers
is content with the name that it looks at.

Not covered: what fields of other names (X-Forwarded-Host and the like) make of a request.
"""

ATTACK = {
    "title": "URL and Host that differ, through the proxy",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "R060", "RFC 9112 section 3.2.2"],
    "arrives": [{"what": "request", "name": "evil.test"}],
    "stopped": [{"reason": ["name-mismatch"], "entry": ["http-proxy"], "where": {"host": "evil.test"}}],
}


def attempt(kit):
    request = kit.get("http://allowed.test/", "evil.test")
    kit.talk("allowed.test", 80, request, entry="http-proxy", tunnel=False)
