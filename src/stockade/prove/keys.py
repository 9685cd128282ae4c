"""The two calls on kernel keyrings that the lane needs (keyctl(2)); Python has none."""

from __future__ import annotations

import ctypes
import os

_KEYCTL = 250 if os.uname().machine == "x86_64" else 219
_JOIN_SESSION_KEYRING, _SEARCH = 1, 10
_SESSION_KEYRING = -3

_libc = ctypes.CDLL(None, use_errno=True)


def join_new_session() -> None:
    """From now on this process and what it starts have a session keyring of their own.

    Raises:
        OSError: The kernel has no keyrings, or no more of them for this user.
    """
    if _libc.syscall(_KEYCTL, _JOIN_SESSION_KEYRING, None) < 0:
        raise OSError(ctypes.get_errno(), "keyctl")


def has_key(description: str) -> bool:
    """Whether a key of type `user` with that description lies in this process's session keyring."""
    number = _libc.syscall(_KEYCTL, _SEARCH, _SESSION_KEYRING, b"user", description.encode(), 0)
    return bool(number >= 0)
