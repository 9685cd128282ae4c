"""A redirect to another scheme: `gopher:`, which sends bytes of the redirector's choice.

Clients that know gopher send the rest of the URL as it stands, line breaks included, to any
port: a web request becomes words to a mail server or a database.

Not covered: `file:`, `ftp:` and other schemes that never reach the network or are TCP like this.
"""

ATTACK = {
    "title": "Redirect to gopher, with bytes for a mail server",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "CWE-918", "RFC 4266 section 2"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 25}],
    "stopped": [{"reason": ["wrong-port"], "entry": ["transparent"]}],
}


def attempt(kit):
    from follow import follow

    follow(kit, "http://allowed.test/redirect?to=gopher://allowed.test:25/_EHLO%2520range")
