"""A request in a chunk: a size that is read in two ways.

`0x0` is zero to a reader that takes C's notation, and a mistake, or a longer number, to one that
does not. Where one sees the end of the body, the other goes on.

Not covered: sizes beyond what a machine word holds, which are refused in the same way.
"""

ATTACK = {
    "title": "Smuggled request: a chunk size in another notation",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-444", "CWE-1286", "RFC 9112 section 7.1"],
    "arrives": [{"what": "request", "path": "/smuggled"}],
    "stopped": [{"reason": ["malformed-request"], "entry": ["transparent"]}],
}


def attempt(kit):
    inner = kit.get("/smuggled", "evil.test")
    head = "Host: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    kit.talk("allowed.test", 80, f"POST /upload HTTP/1.1\r\n{head}0x0\r\n\r\n{inner}")
