"""Python's processes, libraries and sockets under `exec/python`, and native packages, listed and not."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from presets import work_is_done

pytestmark = [pytest.mark.kernel, pytest.mark.clients, pytest.mark.needs("userns", "bwrap", "room")]

PYTHON = "/usr/bin/python3"
PROCESSES = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import shared_memory

def count(queue, lock, name):
    with lock:
        block = shared_memory.SharedMemory(name=name)
        block.buf[0] += 1
        block.close()
    queue.put(block.name)

def main(how):
    context = multiprocessing.get_context(how)
    with context.Pool(2) as pool:
        doubled = pool.map(abs, [-1, 2])
    block = shared_memory.SharedMemory(create=True, size=8)
    queue, lock = context.Queue(), context.Lock()
    workers = [context.Process(target=count, args=(queue, lock, block.name)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        queue.get(timeout=10)
        worker.join()
    counted = block.buf[0]
    block.close()
    block.unlink()
    with context.Manager() as manager:
        shared = manager.dict(a=1)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            future = pool.submit(shared.update, {"b": 2}).result()
        kept = dict(shared)
    with ThreadPoolExecutor(2) as pool:
        print(how, doubled, counted, kept, list(pool.map(abs, [-3])))

if __name__ == "__main__":
    main(sys.argv[1])
"""
LIBRARIES = """
import asyncio, ctypes, lzma, socket, sqlite3, ssl, subprocess, sys
code = "import sys; print(sys.argv[1])"
print(subprocess.run([sys.executable, "-c", code, "again"], capture_output=True, text=True).stdout.strip())
answer = sqlite3.connect("base.db").execute("select 7").fetchone()
print(ctypes.CDLL("libc.so.6").abs(-4), answer, lzma.compress(b"")[:1])
print(ssl.create_default_context().check_hostname, ssl.OPENSSL_VERSION.split()[0])
async def answer():
    server = await asyncio.start_unix_server(lambda r, w: (w.write(b"unix"), w.close()), "/run/s")
    reader, writer = await asyncio.open_unix_connection("/run/s")
    made = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(9)", stdout=-1)
    return await reader.read(), (await made.communicate())[0].strip()
print(*asyncio.run(answer()))
"""
CALLED_BACK = """
import ctypes
numbers = (ctypes.c_int * 3)(3, 1, 2)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
ctypes.CDLL("libc.so.6").qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))
print(list(numbers))
"""


@pytest.mark.parametrize("workspace", ["", "/tmp"], indirect=True, ids=["elsewhere", "below-tmp"])
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_processes_of_python(under: Any, workspace: Path, how: str) -> None:
    (workspace / "work.py").write_text(PROCESSES)
    run = under("exec/python", [PYTHON, "work.py", how])
    work_is_done(run, f"{how} [1, 2] 2 {{'a': 1, 'b': 2}} [3]")


def test_libraries_of_python(under: Any) -> None:
    run = under("exec/python", [PYTHON, "-c", LIBRARIES])
    work_is_done(run, "again", "4 (7,) b'\\xfd'", "True OpenSSL", "b'unix' b'9'")


def test_c_that_calls_python_needs_code_that_is_made_while_it_runs(under: Any) -> None:
    """Where libffi was built without static trampolines, as on Debian, it writes one for each callback."""
    command = [PYTHON, "-c", CALLED_BACK]
    work_is_done(under("exec/python", command, "exec: {code: jit}\n"), "[1, 2, 3]")
    closed = under("exec/python", command)
    if closed.code != 0:
        assert "MemoryError" in closed.err
        assert "makes code while it runs" in closed.err
        assert "add `exec: {code: jit}`" in closed.err


@pytest.mark.slow
@pytest.mark.timeout(80)
def test_an_environment_with_pip_is_made_and_its_python_runs(under: Any, workspace: Path) -> None:
    run = under("exec/python", [PYTHON, "-m", "venv", "made"], timeout_s=60)
    assert run.code == 0, run.err
    run = under("exec/python", ["made/bin/python", "-m", "pip", "--version"])
    assert run.code == 0, run.err
    assert f" from {workspace}/made/lib/" in run.out


def test_python_starts_no_other_program_and_the_refusal_says_what_would_permit_it(under: Any) -> None:
    program = "import subprocess; subprocess.run(['ls', '-l'])"
    run = under("exec/python", [PYTHON, "-c", program])
    assert "PermissionError: [Errno 13] Permission denied: 'ls'" in run.err
    assert "add `exec: {allow: [ls]}`" in run.err
    assert under("exec/python", [PYTHON, "-c", program], "exec: {allow: [ls]}\n").code == 0


# --- native packages ------------------------------------------------------------------------------

NATIVE = r"""
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", "", -1, methods};
PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&module); }
"""
ASK = "import native; print(native.answer())"


@pytest.fixture
def environment(workspace: Path) -> str:
    """A virtual environment with a native module, under another name than the preset lists."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "env"], cwd=workspace, check=True)
    where = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_path('platlib'))"
    paths = subprocess.run(
        ["env/bin/python", "-c", where], cwd=workspace, check=True, capture_output=True, text=True
    ).stdout.split()
    (workspace / "native.c").write_text(NATIVE)
    made = ["gcc", "-shared", "-fPIC", f"-I{paths[0]}", "native.c", "-o", f"{paths[1]}/native.so"]
    subprocess.run(made, cwd=workspace, check=True)
    return "env"


needs_headers = pytest.mark.skipif(
    not Path("/usr/include", Path(sysconfig.get_path("include")).name, "Python.h").exists(),
    reason="no headers of the system's Python (package python3-dev)",
)


@needs_headers
@pytest.mark.needs("gcc")
def test_f20_a_native_package_loads_where_it_is_listed_and_else_the_summary_says_what_lists_it(
    under: Any, environment: str
) -> None:
    command = [f"{environment}/bin/python", "-c", ASK]
    refused = under("exec/python", command)
    assert "failed to map segment from shared object" in refused.err
    assert refused.code == 1
    assert "env holds compiled modules (.so)" in refused.err
    assert "to permit it, add `exec: {libraries: [env]}`" in refused.err
    run = under("exec/python", command, f"exec: {{libraries: [{environment}]}}\n")
    work_is_done(run, "42")
    assert "cannot be loaded" not in run.err
    written = "import sys; open(sys.prefix + '/lib/new.so', 'w')"
    kept = under("exec/python", [command[0], "-c", written], f"exec: {{libraries: [{environment}]}}\n")
    assert "Read-only file system" in kept.err


@needs_headers
@pytest.mark.needs("gcc")
def test_a_dry_run_tells_of_native_packages_that_are_not_listed(under: Any, environment: str) -> None:
    command = [f"{environment}/bin/python", "-c", ASK]
    said = under("exec/python", command, extra=["--dry-run"]).out
    assert "to permit it, add `exec: {libraries: [env]}`" in said.splitlines()[-1]
    listed = under("exec/python", command, "exec: {libraries: [env]}\n", extra=["--dry-run"]).out
    assert "cannot be loaded" not in listed
