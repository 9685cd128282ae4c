"""A file in the workspace grows until the host's disk is full.

A bounded one: it stops at 16 MiB, of which the policy permits 4. The lane looks at the file
afterwards.

Not covered: many files below the limit; the number of files and their sum have no limit.
"""

ATTACK = {
    "title": "File larger than the limit",
    "group": "calls",
    "layer": "supervisor",
    "risk": "boundary-tampering",
    "references": ["ATT&CK T1499", "CWE-770", "getrlimit(2) RLIMIT_FSIZE"],
    "arrives": [{"what": "state", "name": "endless-file"}],
    "stopped": [{"silent": ["EFBIG"]}],
    "policy": "limits: {file-size: 4MiB}\n",
}


def attempt(kit):
    def grow():
        with open(f"{kit.folder}/endless", "wb", buffering=0) as file:
            for _ in range(16):
                file.write(bytes(1 << 20))

    kit.do("write", grow)
