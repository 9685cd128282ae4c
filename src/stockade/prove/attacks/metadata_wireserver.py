"""A cloud's host agent at an address that looks public.

168.63.129.16 is the platform's own service inside one cloud and lies in ordinary space: no range
of private or reserved addresses contains it, and `ipaddress.is_global` calls it public.

Not covered: host agents of clouds that the address table does not know.
"""

ATTACK = {
    "title": "Host agent of the cloud at a public-looking address",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "R039", "Azure: What is IP address 168.63.129.16?"],
    "rules": "  - allow: azure.test\n    ports: [80]\n",
    "reachable": ["azure.test"],
    "arrives": [{"what": "tcp", "address": "168.63.129.16"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "azure.test"},
        }
    ],
}


def attempt(kit):
    kit.talk("azure.test", 80, kit.get("/machine/?comp=goalstate", "azure.test"))
    kit.talk("168.63.129.16", 80, kit.get("/machine/?comp=goalstate", "168.63.129.16"))
