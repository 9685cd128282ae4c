"""DNS over QUIC, and any other resolver protocol over UDP beside port 53.

UDP 853 is DNS over QUIC; DNSCrypt uses 443. Where only UDP 53 is caught, a question leaves by
another port in the same number of packets. A permitted name changes nothing: no UDP is carried.

Not covered: that the packet would have been understood; the range shows that it was sent.
"""

ATTACK = {
    "title": "DNS over QUIC",
    "group": "dns",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["RFC 9250 section 4.1.1", "R083", "R157"],
    "arrives": [{"what": "packet", "protocol": "udp", "port": 853}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["udp"], "where": {"address": "9.9.9.9", "port": "853"}},
        {"reason": ["literal-address"], "entry": ["udp"], "where": {"address": "2620:fe::fe", "port": "853"}},
    ],
}


def attempt(kit):
    for place in ("allowed.test", "9.9.9.9", "2620:fe::fe"):
        kit.udp(place, 853, patience=0.1)
