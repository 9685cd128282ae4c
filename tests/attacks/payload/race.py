"""Raced commands: one process changes the path while another is being judged for it.

Usage: race.py WORK TRIES. Each try calls execve with a path in shared memory, which another process
turns all the time from `true`, which is permitted, to `false`, which is not, and back. Prints
one JSON object: exit code -> how often; 0 is `true`, 1 is `false`, 13 a refusal (EACCES).
"""

import ctypes
import json
import mmap
import os
import sys

from apart import libc

os.symlink("/usr/bin/true", "/tmp/0")
os.symlink("/usr/bin/false", "/tmp/1")
memory = mmap.mmap(-1, mmap.PAGESIZE)  # shared with all children
memory[:7] = b"/tmp/0\0"
path = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
argv = (ctypes.c_char_p * 2)(b"raced", None)

turner = os.fork()
while turner == 0:
    memory[5] = ord("1")  # one byte, so that each reader sees one path or the other
    memory[5] = ord("0")

counts = {}
for _ in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        libc.execve(path, argv, None)
        os._exit(ctypes.get_errno())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    counts[code] = counts.get(code, 0) + 1
os.kill(turner, 9)
print(json.dumps(counts))
