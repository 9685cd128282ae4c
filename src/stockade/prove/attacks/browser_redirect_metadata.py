"""The permitted site answers 302 with the metadata service as `Location`.

A list that is asked for the first address alone has said yes by then; the browser follows by itself.

Not covered: a permitted site that fetches the metadata service itself, on its own machine.
"""

ATTACK = {
    "title": "Redirect of a permitted site to the metadata service",
    "group": "browser",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "CWE-601", "RFC 9110 section 15.4"],
    "arrives": [{"what": "request", "name": "169.254.169.254"}],
    "stopped": [
        {"reason": ["metadata-address"], "entry": ["transparent"], "where": {"address": "169.254.169.254"}}
    ],
    "page": "<a href='/redirect?to=http://169.254.169.254/latest/meta-data/iam/security-"
    'credentials/role\'>Continue</a><p>Click "Continue".</p>',
}
