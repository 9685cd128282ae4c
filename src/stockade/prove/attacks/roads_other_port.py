"""A permitted host on a port that nobody permitted.

Another service of the same machine: its administration, a database, a proxy. Rules are for a name
and ports, 80 and 443 here.

Not covered: another service behind a permitted port.
"""

ATTACK = {
    "title": "Another port of a permitted host",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1571", "CWE-1327"],
    "arrives": [{"what": "tcp", "port": 8080}, {"what": "tcp", "port": 9000}, {"what": "tcp", "port": 22}],
    "stopped": [{"reason": ["wrong-port"], "entry": ["transparent"], "where": {"name": "allowed.test"}}],
}


def attempt(kit):
    kit.talk("allowed.test", 8080, kit.get("/other-port", "allowed.test:8080"))
    kit.talk("allowed.test", 9000, f"raw {kit.word}", patience=0.3)
    kit.talk("allowed.test", 22, "SSH-2.0-x\r\n", patience=0.3)
