"""CONNECT to another port of the permitted host.

A proxy that permits by name alone is a way to every port of that host: mail, remote shells,
databases.

Not covered: other protocols through the permitted ports, which are held to TLS and HTTP.
"""

ATTACK = {
    "title": "CONNECT to a mail port of a permitted host",
    "group": "http",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CWE-441", "R055", "R077", "RFC 9110 section 9.3.6"],
    "arrives": [{"what": "tcp", "address": "93.184.216.34", "port": 25}],
    "stopped": [{"reason": ["wrong-port"], "entry": ["http-proxy"]}],
}


def attempt(kit):
    kit.talk("allowed.test", 25, "EHLO range\r\n", entry="http-proxy", patience=0.1)
