"""A permitted name with a public and a private answer at once.

Both addresses stand in one answer. A guard that finds one good address lets the name pass; the
client tries the other when the first fails, and the attacker sees to it that it does.

Not covered: two answers that both are public.
"""

ATTACK = {
    "title": "Public and private answer of one name",
    "group": "names",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-350", "CWE-918", "R051"],
    "rules": "  - allow: mixed.test\n    ports: [80]\n",
    "reachable": ["mixed.test"],
    "arrives": [{"what": "tcp", "address": "10.20.0.5"}],
    "stopped": [
        {
            "reason": ["private-address"],
            "entry": ["transparent"],
            "where": {"control": "check-resolved-address", "name": "mixed.test"},
        }
    ],
}


def attempt(kit):
    for address in kit.resolve("mixed.test").get("addresses", []):  # as a client with a fallback does
        kit.talk(address, 80, kit.get("/", "mixed.test"))
