"""Where a proof was made: kernel, interpreter, what containment can use here, and what is missing."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from stockade.evidence.ledgers import LedgerSummary
from stockade.evidence.points import Clock, Environment, TrialFact

# What each run is held by; the rest of `enforced` differs from run to run by nature (paths, group names).
_WORKER_KEYS = (
    "network", "namespaces", "capabilities", "no_new_privileges", "system_call_filter", "landlock_abi",
    "commands", "code", "layers_off", "worker_uid", "started_as_root", "ipv6",
)  # fmt: skip


def probe_environment(with_browser: bool) -> Environment:
    """Look at this machine, and try what `stockade doctor` tries (half a second)."""
    from stockade.sandbox.landlock import probe_landlock

    trials = _run_doctor()
    return Environment(
        kernel=platform.release(),
        machine=platform.machine(),
        system=_read_system_name(),
        python=platform.python_version(),
        processors=len(os.sched_getaffinity(0)),
        started_as_root=os.geteuid() == 0,
        capabilities=_read_status("CapEff") or "unknown",
        landlock_abi=probe_landlock()[0],
        seccomp=_read("/proc/sys/kernel/seccomp/actions_avail") or "unknown",
        user_namespaces=_describe_user_namespaces(),
        cgroup=_describe_cgroup(),
        clock=_probe_clock(),
        trials=trials,
        missing=[f"{trial.name}: {trial.lost or trial.detail}" for trial in trials if not trial.works],
        browser=_probe_browser() if with_browser else None,
    )


def add_workers(environment: Environment, ledgers: Iterable[LedgerSummary]) -> Environment:
    """The same with what the runs say of themselves in their first records: equal ones are counted."""
    found = Counter(
        msgspec.json.encode(
            {key: one.opened.get("enforced", {}).get(key) for key in _WORKER_KEYS}, order="sorted"
        )
        for one in ledgers
    )
    workers: list[dict[str, Any]] = [
        {"runs": count, **msgspec.json.decode(facts)} for facts, count in sorted(found.items())
    ]
    return msgspec.structs.replace(environment, worker=workers)


def _run_doctor() -> list[TrialFact]:
    from stockade.sandbox.limit_trial import LIMIT_TRIALS
    from stockade.sandbox.seal_trial import SEAL_TRIALS
    from stockade.sandbox.trial import TRIALS, WHOLE_START, run_trials

    results = run_trials((*TRIALS, *SEAL_TRIALS, WHOLE_START, *LIMIT_TRIALS))
    return [TrialFact(**msgspec.structs.asdict(result)) for result in results]


def _read_system_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _read_status(key: str) -> str:
    lines = (line.partition(":") for line in _read("/proc/self/status").splitlines())
    return next((value.strip() for name, _, value in lines if name == key), "")


def _describe_user_namespaces() -> str:
    most = _read("/proc/sys/user/max_user_namespaces")
    unprivileged = _read("/proc/sys/kernel/unprivileged_userns_clone")
    return f"at most {most or 'unknown'}" + (
        f"; unprivileged_userns_clone {unprivileged}" if unprivileged else ""
    )


def _describe_cgroup() -> str:
    if controllers := _read("/sys/fs/cgroup/cgroup.controllers"):
        return f"v2: {controllers}"
    return "v1" if os.path.isdir("/sys/fs/cgroup") else "none"


def _probe_clock() -> Clock:
    return Clock(
        source=_read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        or time.get_clock_info("time").implementation,
        is_synchronized=_is_clock_synchronized(),
        boot_id=_read("/proc/sys/kernel/random/boot_id"),
    )


def _is_clock_synchronized() -> bool | None:
    """What the kernel has been told by a time service: adjtimex(2), whose STA_UNSYNC is 0x40."""
    import ctypes

    buffer = (ctypes.c_long * 64)()  # struct timex is 208 bytes; modes 0 only reads
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.adjtimex(buffer) < 0:
        return None
    return not buffer[5] & 0x40  # modes, offset, freq, maxerror, esterror, status: words of 8 bytes each


def _probe_browser() -> str | None:
    try:
        said = subprocess.run(
            ["chromium", "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip() or None
