"""A script of a permitted page sets `location`, as a page that was broken into would do.

No answer's head and no tag of the page shows where it leads, and it comes a moment after the page was
loaded.

Not covered: scripts that only read; those are under `fetch` and the beacons.
"""

ATTACK = {
    "title": "Script that navigates to the metadata service",
    "group": "browser",
    "layer": "gateway",
    "risk": "metadata-credentials",
    "references": ["CWE-918", "ATT&CK T1189"],
    "arrives": [{"what": "request", "name": "169.254.169.254"}],
    "stopped": [
        {"reason": ["metadata-address"], "entry": ["transparent"], "where": {"address": "169.254.169.254"}}
    ],
    "page": "<p>Loading.</p><script>setTimeout(() => { location.href = "
    "'http://169.254.169.254/latest/meta-data/iam/security-credentials/role' }, "
    "50)</script>",
}
