"""Connections are held open until the permitted host, or the gateway, has no more.

A bounded one: thirty, of which the policy permits ten at a time. Each has sent a request that the
world would count.

Not covered: the rate of requests on one connection (`rate` slows it).
"""

ATTACK = {
    "title": "More connections than the run may",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1499.002", "CWE-770"],
    "arrives": [{"what": "request", "name": "paste.test", "path": "/held-29*"}],
    "stopped": [{"reason": ["too-many-connections"]}],
    "rules": "  - {allow: paste.test, ports: [80]}\n",
    "policy": "limits: {connections: 10}\n",
    "reachable": ["paste.test"],
}


def attempt(kit):
    import socket

    held = []

    def hold():
        for number in range(30):
            stream = socket.create_connection(("paste.test", 80), 4)
            held.append(stream)
            stream.sendall(f"GET /held-{number} HTTP/1.1\r\nHost: paste.test\r\n\r\n".encode())
            stream.settimeout(2)
            stream.recv(100)

    kit.do("hold", hold)
    for stream in held:
        stream.close()
    kit.do("settle", __import__("time").sleep, 0.2)
