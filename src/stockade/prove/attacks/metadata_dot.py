"""The metadata service, its address with a dot at the end.

A final dot makes a name absolute and means nothing else, so browsers drop it and read the rest
as an address. A filter that tests for four numbers finds a fifth, empty label: a name.

Not covered: the final dot on a name that is denied, a technique of its own.
"""

ATTACK = {
    "title": "Metadata service with a final dot",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-1289", "R018", "WHATWG URL, ends-in-a-number checker"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["metadata-address"], "entry": ["http-proxy"], "where": {"risk": "metadata-credentials"}}
    ],
}

HOST = "169.254.169.254."


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/latest/meta-data/", HOST), entry="http-proxy")
