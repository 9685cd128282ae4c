"""A file of the host that any user may read.

The view is built from nothing: what is not named is not there, so readable for all means nothing
inside. The path is tried as it is, and by climbing out of /proc.

Not covered: what the policy shows by `files: read`, and /usr, which every worker sees.
"""

ATTACK = {
    "title": "Readable file of the host",
    "group": "calls",
    "layer": "view",
    "risk": "boundary-tampering",
    "references": ["CWE-552", "ATT&CK T1005"],
    "arrives": [{"what": "state", "name": "secret-read"}],
    "stopped": [{"silent": ["ENOENT"]}],
    "before": ["secret"],
}


def attempt(kit):
    def read(path):
        with open(path) as file:
            return file.read()

    kit.do("open", read, kit.facts["secret"])
    kit.do("open", read, f"/proc/1/root{kit.facts['secret']}")
    kit.do("open", read, f"/proc/self/root/../../..{kit.facts['secret']}")
