"""A backslash that ends the host for one reader and not for the other.

Browsers read `evil.test\\@allowed.test` like `evil.test/@allowed.test`: the host is evil.test. To
RFC 3986 it is the user `evil.test\\` at allowed.test.

Not covered: backslashes in paths.
"""

ATTACK = {
    "title": "Backslash between two hosts",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "CWE-918", "WHATWG URL, authority state"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"raw": "*@allowed.test"}}],
}


def attempt(kit):
    request = kit.get("http://evil.test\\@allowed.test/", "allowed.test")
    kit.talk("allowed.test", 80, request, entry="http-proxy", tunnel=False)
