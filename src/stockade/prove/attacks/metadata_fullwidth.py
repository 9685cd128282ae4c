"""The metadata service in full-width digits, with ideographic full stops.

Browsers and IDNA-aware clients normalize a host before they read it (NFKC), so `１６９。２５４…`
becomes an address after a filter has looked at it as a name in another script.

Not covered: digits that NFKC leaves alone; no client reads them as an address.
"""

ATTACK = {
    "title": "Metadata service in full-width characters",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-176", "UTS 46 section 4", "R021"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"risk": "metadata-credentials"}}
    ],
}

HOST = "１６９。２５４。１６９。２５４".encode().decode("latin-1")  # as bytes on the wire


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/latest/meta-data/", "169.254.169.254"), entry="http-proxy")
