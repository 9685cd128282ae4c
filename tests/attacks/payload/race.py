"""Raced commands: one process changes the path while another is being judged for it.

Usage: race.py WORK TRIES ONE OTHER. Each try calls execve with a path in shared memory, which another
process turns all the time from a link to ONE into a link to the OTHER and back; its first argument
is its number. Prints a JSON list of exit codes: 0 is `true`, 1 is `false`, others are what execve said.
"""

import ctypes
import json
import mmap
import os
import sys

from apart import libc

os.symlink(sys.argv[3], "/tmp/0")
os.symlink(sys.argv[4], "/tmp/1")
memory = mmap.mmap(-1, mmap.PAGESIZE)  # shared with all children
memory[:7] = b"/tmp/0\0"
path = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))

turner = os.fork()
while turner == 0:
    memory[5] = ord("1")  # one byte, so that each reader sees one path or the other
    memory[5] = ord("0")

codes = []
for number in range(int(sys.argv[2])):
    pid = os.fork()
    if pid == 0:
        libc.execve(path, (ctypes.c_char_p * 3)(b"raced", b"%d" % number, None), None)
        os._exit(ctypes.get_errno())
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
os.kill(turner, 9)
print(json.dumps(codes))
