"""A redirect in the page: `<meta http-equiv=refresh>`.

The order to go on stands in the body, which no gateway reads, and leads to the metadata service.

Not covered: the same through a real browser, which the browser's own techniques try.
"""

ATTACK = {
    "title": "Redirect by a meta element",
    "group": "redirects",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-601", "CWE-918", "R043", "HTML, section 4.2.5.3 (http-equiv)"],
    "pages": {
        "/notes": "<!doctype html><meta http-equiv=refresh content='0;url=http://169.254.169.254/latest/'>",
    },
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["metadata-address"], "entry": ["transparent"], "where": {"address": "169.254.169.254"}},
    ],
}


def attempt(kit):
    from follow import follow

    follow(kit, "http://allowed.test/notes")
