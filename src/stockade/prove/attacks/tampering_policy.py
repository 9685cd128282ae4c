"""The policy lies in the workspace, and the worker opens it for the next run, or for a reload.

It is written to, replaced by rename, linked over and deleted. Files by which Stockade decides are
covered where the view would show them.

Not covered: files that the policy names and that others write.
"""

import os

ATTACK = {
    "title": "Policy in the workspace rewritten",
    "group": "tampering",
    "layer": "view",
    "risk": "boundary-tampering",
    "references": ["CVE-2025-54136", "ATT&CK T1562.001", "CWE-15"],
    "arrives": [{"what": "state", "name": "policy-changed"}],
    "stopped": [{"silent": ["EBUSY", "EROFS"]}],
    "before": ["policy-inside"],
}


def attempt(kit):
    path, mark = kit.facts["policy"], f"\n# planted-{kit.word}\n"

    def append(where):
        with open(where, "a") as file:
            file.write(mark)

    def replace():
        append(f"{kit.folder}/other.yaml")
        os.rename(f"{kit.folder}/other.yaml", path)

    kit.do("append", append, path)
    kit.do("rename", replace)
    kit.do("append", append, f"/proc/self/cwd/{os.path.basename(path)}")
