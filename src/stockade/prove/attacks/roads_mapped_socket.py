"""An IPv4 address dialled through a socket of the other family.

`::ffff:93.184.216.66` on an IPv6 socket sends IPv4 packets: code that looks at the family of the
socket, or at the text, takes it for IPv6.

Not covered: such an address as the answer to a name (group dns).
"""

ATTACK = {
    "title": "IPv4 through an IPv6 socket",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 4291 section 2.5.5.2", "ipv6(7) IPV6_V6ONLY", "CWE-1289"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "*93.184.216.66"}}
    ],
}


def attempt(kit):
    import socket

    def dial():
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as stream:
            stream.settimeout(4)
            stream.connect(("::ffff:93.184.216.66", 80))
            stream.sendall(kit.get("/mapped", "93.184.216.66").encode())
            return stream.recv(400).decode("latin-1")

    kit.do("mapped", dial)
