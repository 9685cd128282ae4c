"""The rubric's host while scoring, by its address.

The list holds names; whoever dials the number that he learnt before, and names a permitted host in the
request, hopes that no name is compared.

Not covered: an address that a permitted name really has (a shared front of a delivery network).
"""

ATTACK = {
    "title": "Rubric host by its address",
    "group": "evaluation",
    "layer": "gateway",
    "risk": "eval-contamination",
    "references": ["CWE-291", "CWE-284"],
    "arrives": [{"what": "tcp", "address": "93.184.216.44"}],
    "stopped": [
        {"reason": ["literal-address"], "entry": ["transparent"], "where": {"address": "93.184.216.44"}}
    ],
    "rules": "  - {allow: rubric.test, ports: [80, 443]}\n",
    "policy": "rubric: [rubric.test]\n",
    "options": ["--phase scoring"],
}


def attempt(kit):
    kit.talk("93.184.216.44", 80, kit.get("/answers", "rubric.test"))
    kit.talk("93.184.216.44", 80, kit.get("/answers", "allowed.test"))
    kit.talk("93.184.216.44", 443, kit.get("/answers", "allowed.test"), sni="allowed.test")
