"""A permitted name that is an alias, of an alias, of a private one.

The answer to the permitted name is no address but CNAME records; the address stands under a name
that nobody listed. A guard that looks for the asked name in the answer finds nothing to judge.

Not covered: an alias of an unlisted name with a public address. Content networks work that way:
who may use a name decides where it leads.
"""

ATTACK = {
    "title": "Alias chain from a permitted name to a private address",
    "group": "names",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-350", "CWE-918", "R051", "RFC 1034 section 3.6.2"],
    "rules": "  - allow: cloaked.test\n    ports: [80]\n",
    "zone": {"cloaked.test": {"cname": "step.test"}, "step.test": {"cname": "priv.test"}},
    "reachable": ["cloaked.test"],
    "arrives": [{"what": "tcp", "address": "10.20.0.5"}],
    "stopped": [
        {
            "reason": ["private-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "cloaked.test"},
        }
    ],
}


def attempt(kit):
    kit.talk("cloaked.test", 80, kit.get("/", "cloaked.test"))
