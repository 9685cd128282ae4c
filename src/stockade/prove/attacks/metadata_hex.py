"""The metadata service, its address in hexadecimal, whole and in single parts.

`0xa9fea9fe` is one number, `0xa9.254.0xa9.254` mixes bases from part to part: a reader that
settles on one base for the whole address gets it wrong.

Not covered: hexadecimal inside IPv6, which is ordinary there.
"""

ATTACK = {
    "title": "Metadata service by hexadecimal address",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-1389", "R033", "WHATWG URL, IPv4 number parser"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["socks5"], "where": {"risk": "metadata-credentials"}}
    ],
}


def attempt(kit):
    for host in ("0xa9fea9fe", "0xa9.254.0xa9.254"):
        kit.talk(host, 80, kit.get("/latest/meta-data/", host), entry="socks5", as_name=True)
        kit.talk(host, 80, kit.get("/latest/meta-data/", host))
