"""A user namespace of the worker's own would give it every capability in it, and with them a new network."""

from __future__ import annotations

from kernel_steps import Contained

NAMESPACES = """
import ctypes, os
FLAGS = {"user": 0x10000000, "net": 0x40000000, "mount": 0x20000, "pid": 0x20000000}
libc = ctypes.CDLL(None, use_errno=True)
def made(flag):
    child = os.fork()
    if child == 0:
        os._exit(0 if libc.unshare(flag) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0
print("user", made(FLAGS["user"]))
for name in ("net", "mount", "pid"):
    print(name, made(FLAGS["user"] | FLAGS[name]))
"""


def test_the_worker_cannot_make_a_user_namespace_and_what_comes_with_one(contained: Contained) -> None:
    assert contained.plainly(NAMESPACES).out.split() == [
        "user",
        "True",
        "net",
        "True",
        "mount",
        "True",
        "pid",
        "True",
    ]
    shown = contained.python(NAMESPACES).out
    assert shown.split() == ["user", "False", "net", "False", "mount", "False", "pid", "False"]
