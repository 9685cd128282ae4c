"""The dots and slashes of such a path written as percent codes, and twice.

`%2e%2e%2f` is no step up for who compares text, and is one for many servers; `%252e` becomes it after a
second decoding.

Not covered: servers that decode more often than twice, or overlong UTF-8.
"""

ATTACK = {
    "title": "Encoded steps out of the permitted path",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-177", "CVE-2021-41773", "RFC 3986 section 2.4"],
    "arrives": [{"what": "request", "name": "docs.test", "path": "*admin*"}],
    "stopped": [
        {
            "reason": ["path-not-permitted", "malformed-request"],
            "entry": ["transparent"],
            "where": {"name": "docs.test"},
        }
    ],
    "rules": "  - {proxy: docs.test, ports: [80], protocol: http, methods: [GET], paths: [/public/**]}\n",
    "reachable": ["docs.test"],
}


def attempt(kit):
    for path in ("/public/%2e%2e/admin", "/public/..%2fadmin", "/public/%2e%2e%2fadmin", "/public/..\\admin"):
        kit.talk("docs.test", 80, kit.get(path, "docs.test"))
    kit.talk("docs.test", 80, kit.get("/public/%252e%252e%252fadmin", "docs.test"))
