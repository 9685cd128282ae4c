"""Paths of requests against the paths of rules.

A path reaches more than one reader: this gateway, perhaps a cache, the server, its
framework. They differ about ``..``, ``%2F``, ``//``, ``;x`` and capital letters, so one
comparison cannot serve both directions:

* a *permission* is read narrowly: the canonical path must match, and a path that two
  readers could read differently matches nothing;
* a *denial* is read generously: every plausible reading is tried, and a path that two
  readers could read differently is closed.

Pure, and linear enough: at most `MAX_WILDCARDS` wildcards in a pattern, matched without
regular expressions, so no path makes it slow.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from stockade.policy.model import PathPattern
from stockade.policy.problems import Rejected, shown

MAX_WILDCARDS = 16
_DECODE_ROUNDS = 3  # a front end, a server and a framework that each decode once

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_NOT_IN_PATH = re.compile(r"[^\x21-\x7e]|[\\?#]")
_HIDDEN = re.compile(r"%(?:2F|5C|[01][0-9A-F]|7F)")  # slash, backslash, control characters
# Spellings that only a careless reader turns into one of those or a dot: escaped twice or more, and UTF-8
# that is longer than it need be (RFC 3629 section 10 names /../ in this form).
_CARELESS = re.compile(r"%(?:25)+(?:2[EF]|5C|[01][0-9A-F]|7F)|%(?:C[01]%[89AB]|E0%[89]|F0%8|F[8-F]%)")
_DOTS = re.compile(r"(?:^|/)\.{1,2}(?:;[^/]*)?(?=/|$)")


def canonical_path(path: str) -> str | None:
    """The path with needless percent escapes undone (RFC 3986 6.2.2), or None.

    None means that two readers could read it differently: dot segments in any spelling,
    an escaped slash, backslash or control character, a broken escape, a character that
    no URI has.
    """
    if not path.startswith("/") or _NOT_IN_PATH.search(path):
        return None
    if "%" in path:
        if any(found[1] is None for found in _ESCAPE.finditer(path)):
            return None
        path = _ESCAPE.sub(_undo_needless, path)
        if _HIDDEN.search(path) or _CARELESS.search(path.upper()):
            return None
    return None if "/." in path and _DOTS.search(path) else path


def _undo_needless(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if char in _UNRESERVED else found[0].upper()


def parse_path_pattern(text: str) -> PathPattern:
    """Parse a path of a rule.

    Raises:
        Rejected: with a spelling that would work.
    """
    if not text.startswith("/"):
        better = 'write "/**" for every path' if text in ("*", "**") else f"write /{text.lstrip('./')}"
        raise Rejected("path-unclear", f"{shown(text)} does not begin with a slash", better)
    if "?" in text or "#" in text:
        raise Rejected(
            "path-unclear",
            f"{shown(text)} has a query or fragment, which rules do not see",
            f"write {re.split('[?#]', text)[0]}",
        )
    path = canonical_path(text)
    if path is None:
        raise Rejected(
            "path-unclear",
            f"{shown(text)} is a path that two servers could read differently",
            "write it without dot segments, escaped slashes and spaces",
        )
    if any("**" in segment and segment != "**" for segment in path.split("/")):
        raise Rejected(
            "path-unclear", f"{shown(text)} has ** inside a segment", "** is a whole segment: /a/**/b"
        )
    if path.count("*") > MAX_WILDCARDS:
        raise Rejected("path-unclear", f"{shown(text)} has more than {MAX_WILDCARDS} wildcards")
    return PathPattern(path)


def permits_path(patterns: tuple[PathPattern, ...], path: str) -> bool:
    """Tell whether a permission for these paths covers a request's path; no patterns cover all."""
    if not patterns:
        return True
    canonical = canonical_path(path)
    if canonical is None:
        return False
    return compile_paths(patterns).has(canonical)


def closes_path(patterns: tuple[PathPattern, ...], path: str | None) -> bool:
    """Tell whether a denial of these paths closes a request's path; no patterns close all.

    Args:
        patterns: The paths of the denial.
        path: The path without its query, or None where it cannot be seen, which is closed.
    """
    if not patterns or path is None or canonical_path(path) is None:
        return True
    folded = _fold(path)
    return folded is None or compile_paths(patterns, is_closing=True).has(folded)


def _fold(path: str) -> str | None:
    """The path as the most lenient reader would take it; None if readers could part ways."""
    for _ in range(_DECODE_ROUNDS):
        decoded = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[0], path)
        if decoded == path:
            break
        path = decoded
    if _NOT_IN_PATH.search(path.replace(" ", "")) and not path.replace(" ", "").isprintable():
        return None
    if "\\" in path or _DOTS.search(path):
        return None
    without_parameters = re.sub(r";[^/]*", "", path)
    collapsed = re.sub(r"/{2,}", "/", without_parameters)
    return collapsed.rstrip("/").casefold() or "/"


class PathSet(Struct, frozen=True):
    """Patterns sorted by how they are compared."""

    exact: frozenset[str]
    prefixes: tuple[str, ...]
    globs: tuple[tuple[str, ...], ...]

    def has(self, path: str) -> bool:
        if path in self.exact or path.startswith(self.prefixes):
            return True
        if not self.globs:
            return False
        segments = path.split("/")
        return any(_matches_segments(glob, segments) for glob in self.globs)


@lru_cache(maxsize=4096)
def compile_paths(patterns: tuple[PathPattern, ...], *, is_closing: bool = False) -> PathSet:
    """Sort patterns into exact paths, prefixes and globs; the cache is by rule, not by request."""
    exact: set[str] = set()
    prefixes: set[str] = set()
    globs: set[tuple[str, ...]] = set()
    for pattern in patterns:
        text = (_fold(pattern.text) or pattern.text) if is_closing else pattern.text
        if "*" not in text:
            exact.add(text)
        elif text.endswith("/**") and "*" not in text[:-3]:
            prefixes.add(text[:-2])
            if is_closing:
                exact.add(text[:-3] or "/")
        else:
            globs.add(tuple(text.split("/")))
            if is_closing and text.endswith("/**"):
                globs.add(tuple(text[:-3].split("/")))
    return PathSet(frozenset(exact), tuple(sorted(prefixes)), tuple(sorted(globs)))


def _matches_segments(glob: tuple[str, ...], segments: list[str]) -> bool:
    """Match whole segments, ``**`` standing for any number; a final ``**`` for at least one."""
    if glob[-1] == "**":
        glob = (*glob[:-1], "*", "**")
    return _matches(glob, segments, "**", _matches_segment)


def _matches_segment(pattern: str, segment: str) -> bool:
    if "*" not in pattern:
        return pattern == segment
    return _matches(tuple(pattern), list(segment), "*", str.__eq__)


def _matches(pattern: tuple[str, ...], items: list[str], star: str, equal: object) -> bool:
    """Glob with one kind of star: on a mismatch let the last star take one item more."""
    assert callable(equal)
    at, index, star_at, star_index = 0, 0, -1, 0
    while index < len(items):
        if at < len(pattern) and pattern[at] == star:
            star_at, star_index = at, index
            at += 1
        elif at < len(pattern) and equal(pattern[at], items[index]):
            at += 1
            index += 1
        elif star_at >= 0:
            star_index += 1
            at, index = star_at + 1, star_index
        else:
            return False
    return all(rest == star for rest in pattern[at:])
