"""A listed program in the workspace is overwritten with another one and then called.

The worker may write its workspace, and the policy lists a tool in it. So the tool is read-only for
the worker, as long as it may run: nothing is both writable and executable.

Layers: mounts alone; without it the attack arrives.

Not covered: what an earlier run, with the tool not on its list, wrote there.
"""

import os

ATTACK = {
    "title": "Listed program overwritten",
    "group": "commands",
    "layer": "mounts",
    "risk": "boundary-tampering",
    "references": ["CWE-732", "ATT&CK T1554", "W^X"],
    "arrives": [{"what": "command"}],
    "stopped": [{"silent": ["EROFS", "EBUSY"]}],
    "policy": "exec: {allow: [./tool]}\n",
    "before": ["listed-tool"],
}


def attempt(kit):
    tool = f"{kit.folder}/tool"

    def overwrite():
        with open("/bin/sh", "rb") as shell, open(tool, "r+b") as file:
            file.write(shell.read())

    def replace():
        with open("/bin/sh", "rb") as shell, open(f"{tool}.new", "wb") as file:
            file.write(shell.read())
        os.chmod(f"{tool}.new", 0o755)
        os.rename(f"{tool}.new", tool)

    kit.do("overwrite", overwrite)
    kit.shell(tool)
    kit.do("replace", replace)
    kit.shell(tool)
