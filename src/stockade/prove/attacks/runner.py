"""Runs one attack inside the worker: a permitted request, the attack, a permitted request, the end.

Usage: python3 runner.py '{"attack": "names_dot", "word": "…", "facts": {…}, "folder": "…", "open": false}'
"""

import importlib
import json
import sys
import traceback

from kit import Kit


def main():
    told = json.loads(sys.argv[1])
    kit = Kit(told["word"], told["facts"], told["folder"], told["open"])
    kit.allowed("before")
    attack = importlib.import_module(told["attack"])
    try:
        attack.attempt(kit)
    except Exception:  # noqa: BLE001  # whatever it is, the judge must hear of it
        kit.say({"broken": traceback.format_exc(limit=3)})
        return
    kit.allowed("after")
    kit.say({"done": True})


if __name__ == "__main__":
    main()
