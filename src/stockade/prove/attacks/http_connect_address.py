"""CONNECT and SOCKS to an address instead of a name.

An address gives a list of names nothing to judge. Even the permitted host's own address is no
permission: what stands behind it tomorrow is somebody else.

Not covered: addresses that the operator gives to a name by `--resolve`.
"""

ATTACK = {
    "title": "CONNECT and SOCKS to an address",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-441", "R037", "R038"],
    "arrives": [
        {"what": "tcp", "address": "93.184.216.66"},
        {"what": "tcp", "address": "2606:2800:220:1::66"},
    ],
    "stopped": [{"reason": ["literal-address"], "entry": ["http-proxy"]}],
}


def attempt(kit):
    for entry in ("http-proxy", "socks5"):
        for place in ("93.184.216.66", "2606:2800:220:1::66"):
            kit.talk(place, 80, kit.get("/", "allowed.test"), entry=entry)
