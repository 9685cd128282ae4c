"""How a child that serves on its standard input is ended: asked first, then told, then killed."""

from __future__ import annotations

import subprocess
from contextlib import suppress


def end_child(process: subprocess.Popen[bytes], idle_s: float, limit_s: float) -> None:
    """End it and reap it; its input is closed, its output is the caller's.

    Args:
        idle_s: How long one that only waits for more may take to notice that there is no more.
        limit_s: How long one that is at work may take to put away what it has put up.
    """
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(idle_s)
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(limit_s)
    if process.poll() is None:
        process.kill()
    process.wait()
