"""The policy is replaced by a looser one while scoring goes on.

The new one lets the rubric's host through by a rule, as an operator in a hurry may write it. The rubric
list is in it as well, and the phase stays: so the host stays closed.

Not covered: an operator who takes the host off the rubric list; that is a change on record.
"""

ATTACK = {
    "title": "Rubric host after a looser policy",
    "group": "evaluation",
    "layer": "gateway",
    "risk": "eval-contamination",
    "references": ["CWE-863", "CWE-284"],
    "arrives": [{"what": "request", "name": "rubric.test"}, {"what": "tcp", "address": "93.184.216.44"}],
    "stopped": [
        {
            "reason": ["rubric-in-scoring"],
            "entry": ["transparent"],
            "where": {"name": "rubric.test", "rule": "looser.yaml*"},
        }
    ],
    "policy": "rubric: [rubric.test]\n",
    "reachable": ["evil.test"],
    "options": ["--phase scoring"],
    "stages": ["looser-policy"],
}


def attempt(kit):
    kit.wait_for("looser-policy")
    kit.talk("evil.test", 80, kit.get("/now-permitted", "evil.test"))
    kit.talk("rubric.test", 80, kit.get("/answers", "rubric.test"))
    kit.talk("rubric.test", 443, kit.get("/answers", "rubric.test"), sni="rubric.test")
