"""The metadata service, its address written as one decimal number.

Many resolvers and C libraries read `2852039166` as 169.254.169.254, so a list that knows the
dotted spelling alone lets it through.

Not covered: octal, hexadecimal and short spellings, which have techniques of their own.
"""

ATTACK = {
    "title": "Metadata service by decimal address",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "RFC 3986 section 7.4", "inet_aton(3)"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["transparent"], "where": {"risk": "metadata-credentials"}}
    ],
}


def attempt(kit):
    kit.talk("2852039166", 80, kit.get("/latest/meta-data/iam/security-credentials/", "2852039166"))
    if not kit.is_open:
        kit.talk("2852039166", 80, kit.get("/latest/meta-data/", "2852039166"), entry="http-proxy")
        kit.talk("2852039166", 80, kit.get("/latest/meta-data/"), entry="socks5", as_name=True)
