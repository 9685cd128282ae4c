"""The metadata service behind a NAT64 translator.

Where a network translates, `64:ff9b::a9fe:a9fe` comes out as 169.254.169.254 at the translator,
which stands where the metadata service answers. The local-use prefix does the same.

Not covered: a prefix of the operator's own, which cannot be recognized by number. The range has
no translator: what counts is that the packet reached it.
"""

ATTACK = {
    "title": "Metadata service through NAT64",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "RFC 6052 section 2.1", "RFC 8215"],
    "arrives": [
        {"what": "tcp", "address": "64:ff9b::a9fe:a9fe"},
        {"what": "tcp", "address": "64:ff9b:1::a9fe:a9fe"},
    ],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"risk": "metadata-credentials", "address": "64:ff9b::a9fe:a9fe"},
        },
    ],
}


def attempt(kit):
    for host in ("64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe"):
        kit.talk(host, 80, kit.get("/latest/meta-data/", "169.254.169.254"))
