"""The run's own ledger is read, written to, moved away.

Who can edit the record can make everything else undone. It lies outside of what the worker sees; in
the open the attacker reaches for a ledger of the same form.

Not covered: someone with rights on the host; for that there are signed checkpoints and a witness elsewhere.
"""

import glob
import os

ATTACK = {
    "title": "Ledger written to and moved",
    "group": "tampering",
    "layer": "view",
    "risk": "boundary-tampering",
    "references": ["ATT&CK T1070", "CWE-117", "CWE-552"],
    "arrives": [{"what": "state", "name": "ledger-changed"}],
    "stopped": [{"silent": ["ENOENT"]}],
    "before": ["ledger"],
}


def attempt(kit):
    shelf, mark = kit.facts["ledger"], f"planted-{kit.word}"

    def append(path):
        with open(path, "a") as file:
            file.write(mark + "\n")

    kit.do("list", os.listdir, shelf)
    for path in glob.glob(f"{shelf}/*/*"):
        kit.do("append", append, path)
    kit.do("new file", append, f"{shelf}/{mark}")
    kit.do("rename", os.rename, shelf, f"{shelf}.{mark}")
    kit.do("by /proc", append, f"/proc/1/root{shelf}/{mark}")
