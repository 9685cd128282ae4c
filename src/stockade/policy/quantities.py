"""Numbers with units, as a policy writes them. One spelling each, and no guessing."""

from __future__ import annotations

import re

from stockade.policy.problems import Rejected, shown

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"(0|[1-9][0-9]{0,14})(B|KiB|MiB|GiB|TiB)?", re.ASCII)
_LOOSE_SIZE = re.compile(r"([0-9]+)\s*([kmgt])i?b?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"([1-9][0-9]{0,6})(s|m|h)", re.ASCII)
_RATE = re.compile(r"([1-9][0-9]{0,6})/(s|m)", re.ASCII)
_COUNT = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def parse_count(text: str) -> int:
    """A whole number in decimal; 080 and 0x50 mean different things to different readers."""
    if not _COUNT.fullmatch(text):
        raise Rejected(
            "not-a-number", f"{shown(text)} is not a plain whole number", "write decimal digits only"
        )
    return int(text)


def parse_size(text: str) -> int:
    """Bytes from ``1MiB`` and the like; a bare number counts bytes."""
    found = _SIZE.fullmatch(text)
    if found:
        return int(found[1]) * _UNITS[found[2] or ""]
    loose = _LOOSE_SIZE.fullmatch(text)
    better = (
        f"write {int(loose[1])}{loose[2].upper()}iB" if loose else "write it as 512B, 16KiB, 1MiB or 2GiB"
    )
    raise Rejected("size-unclear", f"{shown(text)} is not a size", better)


def parse_duration(text: str) -> float:
    """Seconds from ``60s``, ``5m`` or ``1h``."""
    found = _DURATION.fullmatch(text)
    if not found:
        better = f"write {text}s" if text.isdigit() else "write it as 60s, 5m or 1h"
        raise Rejected("duration-unclear", f"{shown(text)} is not a duration", better)
    return float(int(found[1]) * _SECONDS[found[2]])


def parse_rate(text: str) -> float:
    """Requests a second from ``20/s`` or ``30/m``."""
    found = _RATE.fullmatch(text)
    if not found:
        raise Rejected("rate-unclear", f"{shown(text)} is not a rate", "write it as 20/s or 30/m")
    return int(found[1]) / _SECONDS[found[2]]


def write_size(size_bytes: int) -> str:
    """The shortest exact spelling."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % _UNITS[unit] == 0:
            return f"{size_bytes // _UNITS[unit]}{unit}"
    return f"{size_bytes}B"


def write_duration(seconds: float) -> str:
    return f"{int(seconds)}s"


def write_rate(rate_per_s: float) -> str:
    """The spelling that parses to the same number."""
    if rate_per_s == int(rate_per_s):
        return f"{int(rate_per_s)}/s"
    return f"{round(rate_per_s * 60)}/m"
