"""Against a folder of libraries: load from it, and put something of one's own where code is loaded from.

Usage: libraries.py WORK. `WORK/lib` holds `good.so` and the program `tool`. Prints one JSON
object: try -> "done", or the error.
"""

import ctypes
import glob
import json
import os
import shutil
import subprocess
import sys

WORK = sys.argv[1]
LIBRARIES = f"{WORK}/lib"
LOADER = next(iter(glob.glob("/lib64/ld-linux-x86-64.so.2") + glob.glob("/lib/ld-linux-aarch64.so.1")))
OWN = f"{WORK}/own.so"


def load(path):
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise OSError(0, str(error).split(": ", 1)[-1]) from error


def planted():
    shutil.copy(OWN, f"{LIBRARIES}/planted.so")
    load(f"{LIBRARIES}/planted.so")


def overwritten():
    with open(f"{LIBRARIES}/good.so", "r+b") as file:
        file.write(b"\x7f")


def renamed_into():
    shutil.copy(OWN, f"{WORK}/renamed.so")
    os.rename(f"{WORK}/renamed.so", f"{LIBRARIES}/renamed.so")
    load(f"{LIBRARIES}/renamed.so")


def linked_into():
    os.link(OWN, f"{LIBRARIES}/linked.so")
    load(f"{LIBRARIES}/linked.so")


def made_writable():
    os.chmod(f"{LIBRARIES}/good.so", 0o777)


def removed():
    os.unlink(f"{LIBRARIES}/doomed.so")


def run(*argv):
    done = subprocess.run(argv, capture_output=True, timeout=10)
    if done.returncode:
        raise OSError(0, done.stderr.decode(errors="replace").strip()[-80:])


def moved_aside():
    """The last try: a folder of one's own in the place of the real one."""
    os.rename(LIBRARIES, f"{WORK}/aside")
    os.mkdir(LIBRARIES)
    shutil.copy(OWN, f"{LIBRARIES}/in-its-place.so")
    load(f"{LIBRARIES}/in-its-place.so")


TRIES = {
    "load": lambda: load(f"{LIBRARIES}/good.so"),
    "load-own": lambda: load(OWN),
    "planted": planted,
    "overwritten": overwritten,
    "renamed-into": renamed_into,
    "linked-into": linked_into,
    "made-writable": made_writable,
    "removed": removed,
    "run-tool": lambda: run(f"{LIBRARIES}/tool"),
    "load-tool": lambda: run(LOADER, f"{LIBRARIES}/tool"),
    "moved-aside": moved_aside,
}

shutil.copy(f"{LIBRARIES}/good.so", OWN)
found = {}
for name, attempt in TRIES.items():
    try:
        attempt()
        found[name] = "done"
    except OSError as error:
        found[name] = f"errno {error.errno}: {error.strerror}"
print(json.dumps(found))
