"""The metadata service with a percent escape in its address.

A URL's host may be escaped: `169.254.169%2e254` is a name to who compares text, and an address
to who decodes first. The same works twice where a proxy decodes and the next reader does too.

Not covered: escapes in paths, which a rule with `paths` has to read.
"""

ATTACK = {
    "title": "Metadata service with a percent escape",
    "group": "metadata",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-177", "RFC 3986 section 3.2.2"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [
        {"reason": ["malformed-host"], "entry": ["http-proxy"], "where": {"risk": "metadata-credentials"}}
    ],
}

HOST = "169.254.169%2e254"


def attempt(kit):
    kit.talk(HOST, 80, kit.get("/latest/meta-data/", "169.254.169.254"), entry="http-proxy")
    request = kit.get(f"http://{HOST}/latest/meta-data/", HOST)
    kit.talk(HOST, 80, request, entry="http-proxy", tunnel=False)
