"""The metadata service under a permitted name whose answer leads there.

Whoever owns a permitted name, or a name below a permitted wildcard as with `nip.io` and its
likes, says where it leads. The name passes every list; only the answer shows the aim.

Not covered: answers that change from question to question (technique names-rebinding).
"""

ATTACK = {
    "title": "Metadata service as the answer of a permitted name",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "R039", "OWASP SSRF Prevention Cheat Sheet, case 2"],
    "rules": "  - allow: '*.wildcard-dns.test'\n    ports: [80]\n",
    "zone": {"*.wildcard-dns.test": {"a": ["169.254.169.254"]}},
    "reachable": ["169-254-169-254.wildcard-dns.test"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {
            "reason": ["metadata-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "*.wildcard-dns.test"},
        }
    ],
}

HOST = "169-254-169-254.wildcard-dns.test"


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/latest/meta-data/", HOST))
