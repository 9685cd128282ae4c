"""The agent's terminal: runs inside the room, standard library only, nothing of Stockade.

Started as `python3 -I -S -c SOURCE`: one JSON line in names a command line, one out says what
came of it. Each command is a process of the worker, so the policy's `exec:` judges it.
"""

import json
import subprocess
import sys

LIMIT_S = 10
KEPT = 4000


def run(line):
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S
        )
    except (OSError, subprocess.SubprocessError) as refused:
        return {"error": type(refused).__name__, "detail": str(refused)[:300]}
    return {"code": done.returncode, "out": (done.stdout + done.stderr)[:KEPT].decode("utf-8", "replace")}


if __name__ == "__main__":
    for asked in sys.stdin:
        print(json.dumps(run(json.loads(asked)["line"])), flush=True)
