"""What helps where a layer of the seal cannot be put up, said at a start and by `stockade doctor`."""

from __future__ import annotations

import errno
import os

from stockade.errors import HostError

_GIVE_UP = "or give the layer up, on record: --without-layer="

REMEDIES = {
    "mounts": f"kernel 5.12 (mount_setattr), and no filter around us that refuses it; {_GIVE_UP}mounts",
    "landlock": "CONFIG_SECURITY_LANDLOCK, a kernel started with lsm=landlock, and no filter around us that"
    f" refuses it; {_GIVE_UP}landlock",
    "seccomp": "CONFIG_SECCOMP_FILTER, and no filter around us that refuses seccomp; or give up, on record,"
    " the three layers that are one filter:"
    " --without-layer=seccomp --without-layer=memfd --without-layer=notify",
    "memfd": f"no filter around us that refuses prctl(PR_SET_MDWE); {_GIVE_UP}memfd",
    "notify": "kernel 5.19, and no other listener around us, as some container tools have one;"
    f" {_GIVE_UP}notify",
    "reading": "kernel.yama.ptrace_scope below 3, and no filter around us that refuses process_vm_readv;"
    f" {_GIVE_UP}notify",
}
"""By layer; ``reading`` is what the layer notify needs besides."""

# What seccomp(2) says of the listener alone: another one is there, or a flag is newer than the kernel.
_ABOUT_LISTENER = (errno.EBUSY, errno.EINVAL)


def refuse_layer(names: str, number: int, remedy: str) -> HostError:
    """The refusal to start without a layer: which, why, and what would help."""
    return HostError(
        "seal-failed",
        f"layer {names} could not be put up: errno {number}, {os.strerror(number)}",
        f"{REMEDIES[remedy]} (`stockade doctor` tries each)",
    )


def explain_step(step: str, number: int, *, has_eye: bool) -> HostError:
    """Why the stage could not seal itself.

    Args:
        step: Its word for what it was doing: ``no-new-code``, ``landlock`` or ``filter``.
        number: The errno.
        has_eye: The filter was to have a listener.
    """
    if step == "no-new-code":
        return refuse_layer("memfd (code in memory)", number, "memfd")
    if step == "landlock":
        return refuse_layer("landlock", number, "landlock")
    if has_eye and number in _ABOUT_LISTENER:
        return refuse_layer("notify (the eye)", number, "notify")
    return refuse_layer("seccomp (the filter, with memfd and notify)", number, "seccomp")
