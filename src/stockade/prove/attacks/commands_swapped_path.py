"""The path is exchanged between the judgement and the kernel's own look.

A thread turns one link back and forth between a permitted program and the shell while another one
starts it, two dozen times. The eye alone can be raced so; that is why no promise rests on it: what
then runs has to lie on an executable mount and to be permitted by Landlock.

Layers: mounts or landlock; notify alone can be raced.

Not covered: which of the permitted programs ran; a record names what was judged.
"""

import os
import subprocess
import threading

ATTACK = {
    "title": "Path exchanged during the check",
    "group": "commands",
    "layer": "mounts",
    "risk": "boundary-tampering",
    "references": ["CWE-367", "seccomp_unotify(2) NOTES"],
    "arrives": [{"what": "command"}],
    "stopped": [
        {
            "reason": ["program-not-listed"],
            "entry": ["exec"],
            "layer": ["notify"],
            "where": {"program": "*/tool"},
        }
    ],
}


def attempt(kit):
    path, ends = f"{kit.folder}/tool", threading.Event()

    def exchange():
        number = 0
        while not ends.is_set():
            number += 1
            os.symlink(("/bin/sh", "/usr/bin/python3")[number % 2], f"{path}.new")
            os.rename(f"{path}.new", path)

    def race():
        codes = []
        for _ in range(24):
            try:
                words = [path, "-c", kit.witness_script()]  # Python, if it is Python, finds no sense in it
                codes.append(subprocess.run(words, capture_output=True, timeout=5, check=False).returncode)
            except OSError as error:
                codes.append(-(error.errno or 1))
        return {str(code): codes.count(code) for code in set(codes)}

    os.symlink("/bin/sh", path)
    exchanger = threading.Thread(target=exchange)
    exchanger.start()
    kit.do("race", race)
    ends.set()
    exchanger.join()
