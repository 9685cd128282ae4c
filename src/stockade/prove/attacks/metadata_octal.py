"""The metadata service, its address in octal.

A leading zero means octal to `inet_aton` and to browsers, decimal to others: who reads
`0251.0376.0251.0376` as text or as decimal numbers judges another address than the one dialled.

Not covered: programs that read a leading zero as decimal; for them this is no metadata address.
"""

ATTACK = {
    "title": "Metadata service by octal address",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-1389", "R033", "RFC 6943 section 3.1.1"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"risk": "metadata-credentials"}}
    ],
}

HOST = "0251.0376.0251.0376"


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/latest/meta-data/", HOST), entry="http-proxy")
    kit.talk(HOST, 80, kit.get("/latest/meta-data/", HOST))
