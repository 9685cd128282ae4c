"""A redirect from TLS to plain text, on the TLS port.

`http://allowed.test:443/` is the permitted host on a permitted port, in the wrong protocol: the
request would cross the network readable, and whatever is no TLS slips past a reader of hellos.

Not covered: plain text on port 80, which this policy permits by the rule's own ports.
"""

ATTACK = {
    "title": "Redirect from TLS to plain text on the TLS port",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-319", "CWE-757", "R067"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 443, "text": "GET /clear"}],
    "stopped": [{"reason": ["not-the-protocol"], "entry": ["transparent"]}],
}


def attempt(kit):
    from follow import follow

    follow(kit, "https://allowed.test/redirect?to=http://allowed.test:443/clear")
