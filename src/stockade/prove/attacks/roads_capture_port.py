"""The port at which the gateway takes connections up is dialled itself.

Whoever knows it could hope to be taken for traffic that was judged already, or to reach a loop of the
gateway with itself. In the open, where it does not exist, the address behind it is dialled.

Not covered: the proxy ports of the room, which are meant to be dialled and judge what is asked.
"""

ATTACK = {
    "title": "The gateway's own port",
    "group": "roads",
    "layer": "gateway",
    "risk": "boundary-tampering",
    "references": ["CWE-441", "Kubernetes tproxy loops (envoy original_dst)"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["transparent"],
            "where": {"port": "1", "address": "93.184.216.66"},
        }
    ],
}


def attempt(kit):
    request = kit.get("/capture", "93.184.216.66")
    if kit.is_open:
        kit.talk("93.184.216.66", 80, request)
        return
    kit.talk("93.184.216.66", 1, request)
    kit.talk("198.18.0.1", 1, kit.get("/capture"))
    kit.talk("127.0.0.1", 1, kit.get("/capture"))
