"""The metadata service by its own IPv6 address.

`fd00:ec2::254` carries no IPv4 address, so unwrapping finds nothing: the table has to know it,
and IPv6 has to go through the same judgement as IPv4.

Not covered: link-local IPv6 addresses of other clouds, which the table denies as link-local.
"""

ATTACK = {
    "title": "Metadata service over IPv6",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "R039", "R079", "RFC 4193"],
    "arrives": [{"what": "tcp", "address": "fd00:ec2::254"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"risk": "metadata-credentials", "address": "fd00:ec2::254"},
        },
    ],
}


def attempt(kit):
    kit.talk("fd00:ec2::254", 80, kit.get("/latest/meta-data/", "[fd00:ec2::254]"))
