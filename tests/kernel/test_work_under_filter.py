"""Ordinary programs under the whole filter: a wrong block is a fault just as a hole is.

The filter is loaded here in a sandbox without one, at the level that is asked for, so that
nothing but the filter is looked at: no list of programs, no noexec mounts.
"""

from __future__ import annotations

import os

import pytest
from kernel_steps import PYTHON, Contained, Result

from doubles.filter_calls import AUDIT
from stockade.sandbox.filter import FilterWish, compile_filter, load_filter_table

MACHINE = os.uname().machine
BARE = ("--without-layer", "seccomp", "--without-layer", "memfd", "--without-layer", "notify")
pytestmark = pytest.mark.skipif(MACHINE not in AUDIT, reason="no table for this machine")

UNDER_FILTER = """
import ctypes, os, sys
program = bytes.fromhex(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(program, len(program))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
loaded = Program(len(program) // 8, ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(loaded), 0, 0) == 0
os.chdir("/tmp")
os.execvp(sys.argv[2], sys.argv[2:])
"""
SHELL = (
    "set -e; coproc cat; x=$(echo a | tr a b); diff <(echo $x) <(echo b); ls /usr | sort | head -1; id -un"
)
GIT = """set -e; git init -q r; cd r; git config user.email a@b; git config user.name n
echo hello > f; git add f; git commit -qm one; git gc -q
git clone -q . ../c; git -C ../c log --format=%s; git stash list; git fsck"""
COMPILER = """set -e; printf '#include <stdio.h>\\nint main(void) { puts("built"); }' > a.c
gcc -O2 -flto -o a a.c; ./a; gcc -shared -fPIC -o a.so a.c"""
FILES = """set -e; echo one > f; tar cf t.tar f; tar tf t.tar; gzip t.tar
grep -P 'o(?=n)' f; perl -e 'print -s "f"'"""
LIBRARIES = """
import asyncio, ctypes, hashlib, json, sqlite3, ssl, subprocess, threading, zlib
numbers = (ctypes.c_int * 3)(3, 1, 2)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
ctypes.CDLL(None).qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))  # C calls back into Python
base = sqlite3.connect(":memory:"); base.create_function("up", 1, lambda x: x + 1)
async def child():
    made = await asyncio.create_subprocess_exec("echo", "hi", stdout=subprocess.PIPE)
    return (await made.communicate())[0]
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
print(list(numbers), base.execute("select up(1)").fetchone(), ssl.create_default_context().check_hostname,
      asyncio.run(child()))
"""
PROCESSES = """
import multiprocessing as m
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory
if __name__ == "__main__":
    with m.Pool(2) as pool: print(pool.map(abs, [-1, 2]))
    with ProcessPoolExecutor(1, mp_context=m.get_context("spawn")) as pool: print(list(pool.map(abs, [-3])))
    queue = m.Queue(); worker = m.Process(target=queue.put, args=(4,))
    worker.start(); print(queue.get()); worker.join()
    lock = m.Lock(); print(lock.acquire())
    block = shared_memory.SharedMemory(create=True, size=8); block.close(); block.unlink()
"""
NODE = """const w = new (require('worker_threads').Worker)('console.log(6*7)', {eval: true});
w.on('exit', () => console.log(require('child_process').execSync('echo child').toString().trim()))"""
ORDINARY_WORK = {
    "shell": (("bash", "-c", SHELL), "bin\nworker\n"),
    "git": (("sh", "-c", GIT), "one\n"),
    "compiler": (("sh", "-c", COMPILER), "built\n"),
    "files": (("sh", "-c", FILES), "f\none\n4"),
    "libraries": ((PYTHON, "-c", LIBRARIES), "[1, 2, 3] (2,) True b'hi\\n'\n"),
    "processes": ((PYTHON, "-c", PROCESSES), "[1, 2]\n[3]\n4\nTrue\n"),
    "downloads": (("sh", "-c", "curl -s --max-time 1 http://127.0.0.1:9; echo $?"), "7\n"),
}


def under_filter(contained: Contained, wish: FilterWish, *command: str) -> Result:
    program = compile_filter(load_filter_table(), MACHINE, wish).hex()
    return contained.python(UNDER_FILTER, program, *command, options=BARE)


NEEDS = {"git": "git", "compiler": "gcc"}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.needs(NEEDS[kind])) if kind in NEEDS else kind
        for kind in ORDINARY_WORK
    ],
)
def test_ordinary_work_goes_on_at_level_closed(contained: Contained, kind: str) -> None:
    command, expected = ORDINARY_WORK[kind]
    result = under_filter(contained, FilterWish(), *command)
    assert (result.out, result.code) == (expected, 0), result.err


@pytest.mark.needs("node")
def test_node_works_at_level_jit_and_not_at_closed(contained: Contained) -> None:
    assert under_filter(contained, FilterWish(code="jit"), "node", "-e", NODE).out == "42\nchild\n"
    assert under_filter(contained, FilterWish(), "node", "-e", NODE).code != 0
    assert under_filter(contained, FilterWish(), "node", "--jitless", "-e", "console.log(1)").out == "1\n"


@pytest.mark.needs("chromium")
def test_chromium_works_at_level_jit_with_unix_sockets(contained: Contained) -> None:
    page = "data:text/html,<script>document.title='ran '+(6*7)</script>"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--user-data-dir=/tmp/profile"]
    wish = FilterWish(code="jit", unix_sockets=True)
    result = under_filter(contained, wish, "chromium", *flags, page)
    assert "<title>ran 42</title>" in result.out, result.err[-2000:]
