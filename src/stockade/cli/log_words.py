"""Words and colors in which `stockade log` tells a record, in whatever arrangement.

Words and columns say everything; color only helps. Texts are cleaned again, since a
ledger may come from somebody else's machine.
"""

from __future__ import annotations

import os

from stockade.ledger.record import clean_text
from stockade.ledger.shelf import Record

COLORS = {"deny": "\x1b[31m", "proxy": "\x1b[33m", "allow": "\x1b[32m"}
DIM = "\x1b[2m"
_PLAIN = "\x1b[0m"


def is_colored(is_terminal: bool) -> bool:
    """Whether color helps the reader (https://no-color.org)."""
    return is_terminal and "NO_COLOR" not in os.environ


def paint(line: str, color: str) -> str:
    return f"{color}{line}{_PLAIN}" if color else line


def show_text(value: object) -> str:
    return "" if value is None else clean_text(str(value), 200)


def show_clock(record: Record) -> str:
    return show_text(record.get("time"))[11:23]


def show_verdict(record: Record) -> str:
    verdict = show_text(record.get("verdict"))
    return "proxy+log" if verdict == "proxy" else verdict


def describe_attempt(record: Record) -> str:
    """Say in few words what was tried: ``GET http app.test:8080/x → 10.0.0.5``."""
    entry, protocol = show_text(record.get("entry")), show_text(record.get("protocol"))
    if record.get("call"):
        return f"call {show_text(record['call'])}"
    if entry == "exec":
        argv = record.get("argv")
        return "run " + " ".join(show_text(a) for a in argv) if isinstance(argv, list) else "run"
    name = show_text(record.get("name") or record.get("raw") or record.get("address") or record.get("socket"))
    if entry == "dns":
        return f"dns {name} {show_text(record.get('query_type'))}".rstrip()
    port = record.get("port")
    place = f"{name}:{port}" if port else name
    words = [show_text(record.get("method")), protocol or entry, place + show_text(record.get("path"))]
    address = show_text(record.get("address"))
    if address and address != name:
        words.append(f"→ {address}")
    return " ".join(word for word in words if word)


def describe_command(command: object) -> str:
    """Say who tried it: ``by /usr/bin/curl (pid 3)``; nothing if that is not known."""
    if not isinstance(command, dict):
        return ""
    return f"by {show_text(command.get('program'))} (pid {show_text(command.get('pid'))})"


def show_argv(argv: object, limit: int = 0) -> str:
    """Arguments as one text, cut after so many characters (0: not cut)."""
    text = " ".join(show_text(word) for word in argv) if isinstance(argv, list) else ""
    return f"{text[:limit]}…" if limit and len(text) > limit else text
