"""A permitted public name whose answer is private.

The owner of a permitted name lets it answer 10.20.0.5: whoever judges names alone then dials into
the network of the host, with a name on the record that looks right.

Not covered: an internal service that the policy opens by an `internal:` entry; that is its use.
"""

ATTACK = {
    "title": "Internal service as the answer of a permitted name",
    "group": "internal",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918", "CWE-350", "R042"],
    "rules": "  - allow: priv.test\n    ports: [80]\n",
    "reachable": ["priv.test"],
    "arrives": [{"what": "tcp", "address": "10.20.0.5"}],
    "stopped": [
        {
            "reason": ["private-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "priv.test"},
        }
    ],
}


def attempt(kit):
    kit.talk("priv.test", 80, kit.get("/admin", "priv.test"))
