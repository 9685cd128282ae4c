"""A redirect in the field `Refresh`.

The status is 200, so nobody who looks for 30x sees a redirect; browsers and some libraries
follow the field all the same.

Not covered: how long the client waits first.
"""

ATTACK = {
    "title": "Redirect by the field Refresh",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "R043", "HTML, section 7.4.4 (Refresh)"],
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "question", "name": "evil.test"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
}


def attempt(kit):
    from follow import follow

    value = "0;url=http://evil.test/refreshed"
    follow(kit, f"http://allowed.test/answer-with?name=Refresh&value={value.replace(';', '%3B')}")
