"""A setting is planted by which the operator's git starts a program at every `git status`.

`core.fsmonitor` names a program; git asks it what has changed. Prompts and editors run `git status` all
the time, so nobody needs to commit.

Not covered: settings that are there already and name a program in the workspace; they are told at the start.
"""

import os

ATTACK = {
    "title": "Git setting that starts a program",
    "group": "tampering",
    "layer": "view",
    "risk": "boundary-tampering",
    "references": ["git-config(1) core.fsmonitor", "CVE-2022-24765", "ATT&CK T1546"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["EROFS", "EBUSY"]}],
    "before": ["git"],
    "stages": ["operator-commits"],
    "needs": ["git"],
}


def attempt(kit):
    program = f"{kit.folder}/monitor"
    with open(program, "w") as file:
        file.write(f"#!/bin/sh\n{kit.witness_script()}\n")
    os.chmod(program, 0o755)

    def plant():
        with open(f"{kit.folder}/.git/config", "a") as file:
            file.write(f"[core]\n\tfsmonitor = {program}\n")

    kit.do("config", plant)
    kit.wait_for("operator-commits")
