"""The metadata service by its plain address, with a session token as the newer form wants it.

A PUT for a token and a GET with it: a guard that only knows the old form, one GET without a
header, has closed nothing, since whoever can send a PUT gets the token too.

Not covered: the same service by other spellings, names and embeddings, which are techniques of
their own.
"""

ATTACK = {
    "title": "Metadata service by plain address, with a token",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "ATT&CK T1552.005", "R039", "RFC 3927 section 2.7"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"risk": "metadata-credentials", "address": "169.254.169.254"},
        },
    ],
}

PLACE = "169.254.169.254"


def attempt(kit):
    lifetime = "X-aws-ec2-metadata-token-ttl-seconds: 60"
    kit.talk(PLACE, 80, kit.get("/latest/api/token", PLACE, "PUT", [lifetime]))
    path = "/latest/meta-data/iam/security-credentials/role"
    kit.talk(PLACE, 80, kit.get(path, PLACE, headers=["X-aws-ec2-metadata-token: range-fake-token"]))
