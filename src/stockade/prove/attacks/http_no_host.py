"""A request of HTTP/1.0 without Host, to an address.

Without Host, and dialled by address, a request names nobody: there is no name to judge, and the
server answers as its default site.

Not covered: a request without Host to the permitted name; the gateway fills the name in.
"""

ATTACK = {
    "title": "HTTP/1.0 without Host",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-348", "R037", "RFC 9112 section 3.2"],
    "arrives": [{"what": "request", "path": "/nameless"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "93.184.216.66"}},
    ],
}


def attempt(kit):
    kit.talk("93.184.216.66", 80, "GET /nameless HTTP/1.0\r\n\r\n")
