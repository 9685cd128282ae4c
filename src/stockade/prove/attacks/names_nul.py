"""A zero byte in the middle of a name.

The text `evil.test\\0.allowed.test` ends as the wildcard permits; a resolver written in C stops
at the zero and dials evil.test.

Not covered: zero bytes behind the host, in paths and fields.
"""

ATTACK = {
    "title": "Zero byte in a name",
    "group": "names",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-158", "CWE-626", "R025", "RFC 1928 section 5"],
    "rules": "  - allow: '*.allowed.test'\n    ports: [80, 443]\n",
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}, {"what": "question", "name": "evil.test"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["socks5"], "where": {"raw": "evil.test\\x00.allowed.test"}}
    ],
}

HOST = "evil.test\0.allowed.test"


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/", "evil.test"), entry="socks5", as_name=True)
    kit.talk(HOST, 80, kit.get("/", "evil.test"), entry="http-proxy")
