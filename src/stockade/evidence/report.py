"""What verification came to, in words: the command and the lab's page say the same."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stockade.evidence.verify import Report

_RESULTS = ("blocked", "leaked", "inconclusive", "not-supported")


def report_object(folder: Path, report: Report) -> dict[str, Any]:
    """As one object, for programs."""
    points = report.statement.predicate.points if report.statement else None
    review = report.review
    return {
        "folder": str(folder),
        "sealed": report.is_sealed,
        "verifies": report.verifies,
        "faults": [{"file": one.file, "problem": one.problem} for one in report.faults],
        "signed_by": report.signed_by or None,
        "key_pinned": report.is_pinned,
        "files": len(points.integrity.files) if points else None,
        "result": report.statement.predicate.result if report.statement else None,
        "counts": points.verdict.counts if points else None,
        "valid_until": points.verdict.valid_until if points else None,
        "expired": _is_expired(points.verdict.valid_until) if points else None,
        "review": None
        if review is None
        else {"reviewer": review.reviewer, "reviewed": review.reviewed, "signed_by": review.signed_by},
    }


_RESULT_MEANS = {"WARNED": " (not the whole catalogue, or a layer was given up)"}


def report_lines(folder: Path, report: Report) -> list[str]:
    """As lines, for people."""
    if not report.is_sealed:
        return [f"{folder}: open: there is no evidence.json, so this is no finished evidence"]
    lines = [f"FAULT {one.file}: {one.problem}" for one in report.faults]
    if not report.verifies:
        return [*lines, f"{folder}: does not verify"]
    assert report.statement is not None
    points = report.statement.predicate.points
    pinned = "the key that you asked for" if report.is_pinned else "key not pinned"
    lines.append(f"{folder}: verifies: {len(points.integrity.files)} files are as they were signed")
    lines.append(f"signed by {report.signed_by}, {pinned}")
    counts = ", ".join(f"{points.verdict.counts.get(word, 0)} {word}" for word in _RESULTS)
    result = report.statement.predicate.result
    lines.append(f"it says: {result}{_RESULT_MEANS.get(result, '')}: {counts}")
    until = points.verdict.valid_until
    if result == "FAILED":
        lines.append("the files are what they were, and what they say is that the containment was not shown")
    elif _is_expired(until):
        lines.append(f"it was meant to hold until {until}, which is past")
    else:
        lines.append(f"valid until {until}")
    if report.review is None:
        lines.append("review: none yet (`stockade evidence review DIR`)")
    else:
        by = (
            "the same key as the evidence"
            if report.review.signed_by == report.signed_by
            else report.review.signed_by
        )
        lines.append(
            f"review: by {report.review.reviewer!a} on {_plain(report.review.reviewed[:10])}, signed by {by}"
        )
    return lines


def _plain(text: str) -> str:
    return ascii(text)[1:-1]


def _is_expired(until: str) -> bool:
    return datetime.now(UTC).date() > date.fromisoformat(until)
