"""The metadata service as an IPv4-mapped IPv6 address.

The kernel sends `::ffff:169.254.169.254` as IPv4. A guard that compares text knows the dotted
form at best, while URL parsers rewrite it in hexadecimal groups: `::ffff:a9fe:a9fe`.

Not covered: the mapped address as an answer of a name, a technique of its own.
"""

ATTACK = {
    "title": "Metadata service as IPv4-mapped address",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "R030", "RFC 4291 section 2.5.5.2"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        # Through the plain road the kernel takes the mapping off before anybody sees it.
        {
            "reason": ["metadata-address"],
            "entry": ["socks5"],
            "where": {"risk": "metadata-credentials", "address": "::ffff:a9fe:a9fe"},
        }
    ],
}


def attempt(kit):
    for host in ("::ffff:169.254.169.254", "::ffff:a9fe:a9fe"):
        kit.talk(host, 80, kit.get("/latest/meta-data/", f"[{host}]"))
        kit.talk(host, 80, kit.get("/latest/meta-data/", f"[{host}]"), entry="socks5")
