"""The metadata service, its address with fewer than four parts.

The last part takes all bytes that are left: `169.254.43518` and `169.16689662` are the same
address. A pattern for four numbers does not see an address at all and takes it for a name.

Not covered: one part alone, which is the technique of the decimal address.
"""

ATTACK = {
    "title": "Metadata service by an address of two or three parts",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "R033", "inet_aton(3)"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"risk": "metadata-credentials"}}
    ],
}


def attempt(kit):
    for host in ("169.254.43518", "169.16689662"):
        kit.talk(host, 80, kit.get("/latest/meta-data/", host), entry="http-proxy")
        kit.talk(host, 80, kit.get("/latest/meta-data/", host))
