"""The permitted name as a user name in front of another host.

In `allowed.test@evil.test` the host is evil.test, and the permitted name is only a login. A
filter that looks at how the text begins is content.

Not covered: user names for the proxy itself, which are neither needed nor passed on.
"""

ATTACK = {
    "title": "Permitted name as a user name",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-918", "CWE-436", "RFC 3986 section 7.6"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"raw": "*@evil.test:80"}}],
}


def attempt(kit):
    kit.talk("allowed.test@evil.test", 80, kit.get("/", "evil.test"), entry="http-proxy")
    request = kit.get("http://allowed.test@evil.test/", "allowed.test@evil.test")
    kit.talk("allowed.test@evil.test", 80, request, entry="http-proxy", tunnel=False)
