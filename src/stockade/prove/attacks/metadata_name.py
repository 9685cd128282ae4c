"""The metadata service by the name that its cloud gives it.

`metadata.google.internal` resolves only inside the cloud. A list of addresses does not know it,
and a wildcard such as `*.internal` lets it through.

Not covered: names that an operator's own DNS gives the service; the address table judges their
answers (technique metadata-alias).
"""

ATTACK = {
    "title": "Metadata service by its own name",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "ATT&CK T1552.005", "R039"],
    "rules": "  - allow: '*.google.internal'\n    ports: [80]\n",
    "zone": {"metadata.google.internal": {"a": ["169.254.169.254"]}},
    "arrives": [
        {"what": "tcp", "address": "169.254.169.254"},
        {"what": "question", "name": "metadata.google.internal"},
    ],
    "stopped": [
        {"reason": ["metadata-name"], "entry": ["transparent"], "where": {"risk": "metadata-credentials"}}
    ],
}

HOST = "metadata.google.internal"


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/computeMetadata/v1/", HOST, headers=["Metadata-Flavor: Google"]))
