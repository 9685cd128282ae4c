"""A folder of the workspace becomes a link, and the next run's policy names that folder.

One run plants, the next one would show what the link leads to: any folder of the host that its starter
may read. Paths of `files:` are followed without links.

Not covered: links that the operator himself set and names by where they lead.
"""

import os

ATTACK = {
    "title": "Planted link widens the next run",
    "group": "tampering",
    "layer": "supervisor",
    "risk": "boundary-tampering",
    "references": ["CWE-59", "CVE-2024-21626", "CVE-2025-53109"],
    "arrives": [{"what": "state", "name": "secret-read"}],
    "stopped": [{"silent": ["code-102"]}],
    "before": ["secret"],
    "stages": ["read-cache"],
}


def attempt(kit):
    os.symlink(os.path.dirname(kit.facts["secret"]), f"{kit.folder}/cache")
    kit.wait_for("read-cache")
