"""Only the name of the rubric's host is asked for.

The question itself tells the host's name server that somebody is scoring, and its answer can carry
data. While scoring no question for a rubric name leaves the machine.

Not covered: names below permitted ones (group dns).
"""

ATTACK = {
    "title": "Question for the rubric host's name",
    "group": "evaluation",
    "layer": "gateway",
    "risk": "eval-contamination",
    "references": ["ATT&CK T1071.004", "CWE-284"],
    "arrives": [{"what": "question", "name": "*rubric.test"}],
    "stopped": [{"reason": ["rubric-in-scoring"], "entry": ["dns"], "where": {"name": "*rubric.test"}}],
    "rules": "  - {allow: rubric.test, ports: [80, 443]}\n",
    "policy": "rubric: [rubric.test]\n",
    "options": ["--phase scoring"],
}


def attempt(kit):
    kit.ask("rubric.test")
    kit.ask("rubric.test", kind=16)
