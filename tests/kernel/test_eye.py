"""The eye's descriptor goes away while commands wait and run: new ones fail closed (boundary.md F19)."""

from __future__ import annotations

from kernel_steps import Contained

# The launched program goes on; each further command, and each call that the eye reports, is ENOSYS (38).
CLOSED = """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def command(*argv):
    try: return subprocess.run(argv).returncode
    except OSError as error: return error.errno
def call():
    return 0 if libc.unshare(0x10000000) == 0 else ctypes.get_errno()
true = "/usr/bin/true"
print(command(true), call(), command(true, "close-now"), command(true), call())
print(open("/etc/passwd").read(4), os.getpid() > 1)
"""
LISTED = ("--exec", "listed", "--allow", "true")


def test_f19_without_its_listener_no_new_command_runs_and_what_runs_goes_on(contained: Contained) -> None:
    for level in (LISTED, ("--exec", "any")):
        closed = contained.python(CLOSED, options=(*level, "--close-eye-at", "close-now"))
        assert closed.out.splitlines()[0] == "0 1 38 38 38", closed.err
        assert closed.out.splitlines()[1].endswith("True")
    served = contained.python(CLOSED, options=(*LISTED, "--close-eye-at", "never-said"))
    assert served.out.splitlines()[0] == "0 1 0 0 1"
