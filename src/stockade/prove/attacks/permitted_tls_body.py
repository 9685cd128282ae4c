"""Provider-side tools, or a foreign account, inside TLS.

Real model providers are reached by TLS only; body and headers can be judged only where the gateway opens
it with an authority of its own.

Not covered: everything; see permitted_tls_path.
"""

ATTACK = {
    "title": "Account and body inside TLS",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["Claude files API exfiltration, 2025", "RFC 8446"],
    "arrives": [{"what": "request", "name": "provider.test", "text": "attackers-key"}],
    "stopped": [{"reason": ["foreign-credential"], "entry": ["transparent"]}],
    "not_supported": "needs TLS interception",
}


def attempt(kit):
    key = ("x-api-key: attackers-key",)
    kit.talk("provider.test", 443, kit.get("/v1/files", "provider.test", "POST", key), sni="provider.test")
