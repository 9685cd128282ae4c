"""The metadata service inside Teredo and ISATAP addresses.

Teredo carries the client's IPv4 address with every bit inverted, so the bytes of 169.254.169.254
are nowhere to be seen; ISATAP has it behind `0:5efe` in the interface part of any prefix.

Not covered: whether a tunnel end exists; the range shows that the packet was sent to one.
"""

ATTACK = {
    "title": "Metadata service through Teredo and ISATAP",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "RFC 4380 section 4", "RFC 5214 section 6.1"],
    "arrives": [
        {"what": "tcp", "address": "2001:0:5db8:d822:8000:63bf:5601:5601"},
        {"what": "tcp", "address": "2606:2800:220:1:0:5efe:a9fe:a9fe"},
    ],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"risk": "metadata-credentials", "address": "2001:0:5db8:d822:8000:63bf:5601:5601"},
        },
    ],
}


def attempt(kit):
    for host in ("2001:0:5db8:d822:8000:63bf:5601:5601", "2606:2800:220:1:0:5efe:a9fe:a9fe"):
        kit.talk(host, 80, kit.get("/latest/meta-data/", "169.254.169.254"))
