"""The path of the run's report becomes a link to a file of the host.

Whoever writes to it at the end, with rights that the worker lacks, overwrites that file. The report is
written to a file that the worker cannot replace, and not through a link.

Not covered: reports that the caller himself makes of the output.
"""

import os

ATTACK = {
    "title": "Report's path made a link",
    "group": "tampering",
    "layer": "view",
    "risk": "boundary-tampering",
    "references": ["CWE-59", "CWE-61", "ATT&CK T1222"],
    "arrives": [{"what": "state", "name": "file-overwritten"}],
    "stopped": [{"silent": ["EBUSY", "EROFS", "EEXIST"]}],
    "before": ["precious"],
    "options": ["--report $report"],
    "stages": ["write-report"],
}


def attempt(kit):
    report = kit.facts["report"]

    def link():
        os.symlink(kit.facts["precious"], report)

    if not kit.is_open:
        kit.do("unlink", os.unlink, report)
        kit.do("rename", os.rename, report, f"{report}.old")
    kit.do("link", link)
    kit.wait_for("write-report")
