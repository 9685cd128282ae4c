"""HTTP/3 to a permitted host.

QUIC is UDP to port 443: names, hosts and methods are inside its own encryption, so nobody between
could judge it. It is refused even where the host is permitted, and at once, so that clients fall back.

Not covered: what the client then does over TCP, which is judged.
"""

ATTACK = {
    "title": "QUIC to a permitted host",
    "group": "roads",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["RFC 9000", "RFC 9114", "ATT&CK T1095"],
    "arrives": [{"what": "udp", "port": 443}, {"what": "packet", "protocol": "udp", "port": 443}],
    "stopped": [
        {"reason": ["wrong-protocol"], "entry": ["udp"], "where": {"name": "allowed.test", "port": "443"}}
    ],
}


def attempt(kit):
    # A long header with version 1 and two connection ids, padded as an Initial has to be.
    kit.udp(
        "allowed.test", 443, "\xc3\x00\x00\x00\x01\x08ABCDEFGH\x00" + kit.word + "\x00" * 1180, patience=0.2
    )
