"""A proof that nobody ran: one technique of each result, with foreign text that tries to be markup."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import msgspec

from stockade.evidence.record import OpenRecord, Sealed
from stockade.evidence.statement import Circumstances
from stockade.prove.technique import Group, Layer, Stopped, Technique, Witness
from stockade.prove.trial import Judged, Judgement, Result, Trial, Try
from stockade.vocabulary import Risk

HOSTILE = "</pre><script>alert('<i>')</script><img src=x onerror=alert(1)>\0\x1b[31m\u202e]]>&amp;"
RUN = "20261130T101500-abcdef"
DENIAL: dict[str, Any] = {
    "seq": 2, "entry": "transparent", "reason": "metadata-address", "rule": "builtin:metadata",
    "address": "169.254.169.254", "port": 80, "method": "GET", "path": "/latest/",
    "why": "169.254.169.254 is special (metadata service); no rule can open it.",
}  # fmt: skip


def make_technique(name: str, **more: Any) -> Technique:
    fields: dict[str, Any] = {
        "title": f"Made-up attack {name}",
        "group": Group.METADATA,
        "layer": Layer.GATEWAY,
        "risk": Risk.METADATA_CREDENTIALS,
        "references": ("CWE-918",),
        "arrives": (Witness(what="tcp", address="169.254.169.254"),),
        "stopped": (Stopped(reason=("metadata-address",)),),
        "about": "How it works, in a paragraph.\n\nAnd another one.",
        "not_covered": "Other spellings.",
    }
    return Technique(id=name, **{**fields, **more})


def make_try(**more: Any) -> Try:
    fields: dict[str, Any] = {
        "said": (
            {"allowed": "before", "do": "talk", "reply": "HTTP/1.1 200 OK\r\n\r\nhello"},
            {"done": True},
        ),
        "is_done": True,
        "allowed_before": True,
        "allowed_after": True,
        "exit_code": 0,
        "seconds": 0.25,
    }
    return Try(**{**fields, **more})


ARRIVED = ({"what": "tcp", "address": "169.254.169.254", "port": 80, "bytes": 97, "text": HOSTILE},)


def make_judged(name: str, result: Result, why: str, stopped_by: str = "", **attempt: Any) -> Judged:
    return Judged(
        trial=Trial(
            id=name,
            control=make_try(arrived=ARRIVED, said=({"do": "talk", "reply": HOSTILE}, {"done": True})),
            attempt=make_try(**attempt),
            not_supported=why if result is Result.NOT_SUPPORTED else None,
        ),
        judgement=Judgement(id=name, result=result, why=why, stopped_by=stopped_by),
    )


def make_proof() -> tuple[list[Technique], list[Judged]]:
    """Techniques and what came of them: two blocked, one of them by browser, and one of each other result."""
    techniques = [
        make_technique("one-blocked"),
        make_technique("one-leaked", title=HOSTILE, layer=Layer.ROOM),
        make_technique("one-odd", group=Group.DNS),
        make_technique("one-unsupported", not_supported="needs root: an ordinary user cannot do this"),
        make_technique("one-browser", group=Group.BROWSER, page="<p>go on</p>"),
    ]
    closing = {"kind": "run.closed", "complete": True, "completeness": "syn 5 = accepted 5"}
    judged = [
        make_judged(
            "one-blocked",
            Result.BLOCKED,
            "nothing arrived; refused by gateway: metadata-address",
            "gateway: metadata-address",
            denials=(DENIAL, {**DENIAL, "repeated": 3}, {**DENIAL, "reason": "not-listed", "why": HOSTILE}),
            said=({"do": "talk", "error": "ConnectionResetError", "errno": "ECONNRESET", "detail": HOSTILE},),
            closing=closing,
            run=RUN,
        ),
        make_judged("one-leaked", Result.LEAKED, f"it arrived: {HOSTILE}", arrived=ARRIVED),
        make_judged("one-odd", Result.INCONCLUSIVE, "nothing arrived, and nobody says why"),
        make_judged("one-unsupported", Result.NOT_SUPPORTED, "needs root: an ordinary user cannot do this"),
        make_judged(
            "one-browser",
            Result.BLOCKED,
            "nothing arrived; refused by gateway: metadata-address",
            "gateway: metadata-address",
            denials=(DENIAL,),
            closing=closing,
            files={
                "before": "browser/one-browser/before.png",
                "after": "browser/one-browser/after.png",
                "transcript": "browser/one-browser/transcript.jsonl",
            },
        ),
    ]
    return techniques, judged


def make_circumstances(**more: Any) -> Circumstances:
    fields: dict[str, Any] = {
        "command": ("stockade", "prove", "--out", "/tmp/evidence"),
        "started": "2026-11-30T10:15:00.000Z",
        "finished": "2026-11-30T10:16:30.000Z",
        "seconds": 90.0,
        "expected_at": "2026-11-30T10:15:00.000Z",
        "is_whole": True,
        "is_passed": False,
    }
    return Circumstances(**{**fields, **more})


def make_png(width: int = 8, height: int = 8) -> bytes:
    """A grey picture (PNG, section 5: signature and chunks of length, type, data, CRC)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def write_files_of_lanes(folder: Path, expectation_sha256: str) -> None:
    """What lanes leave: a ledger of two records, screenshots, a transcript."""
    run = folder / "ledger" / RUN
    run.mkdir(parents=True)
    records = (
        {"argv": ["python3", f'{{"expectation": "{expectation_sha256}"}}'], "enforced": {"network": "room"},
         "kind": "run.opened", "mono_ns": 1, "run": RUN, "seq": 0, "time": "2026-11-30T10:15:01.000000Z"},
        {"complete": True, "kind": "run.closed", "mono_ns": 2, "run": RUN, "seq": 1,
         "time": "2026-11-30T10:15:02.000000Z"},
    )  # fmt: skip
    (run / "records.jsonl").write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    pictures = folder / "browser" / "one-browser"
    pictures.mkdir(parents=True)
    (pictures / "before.png").write_bytes(make_png())
    (pictures / "after.png").write_bytes(make_png(9))
    (pictures / "transcript.jsonl").write_text(f'{{"action": "open", "said": "{HOSTILE[:20]}"}}\n')


def seal_proof(folder: Path, key_file: Path | None = None, **more: Any) -> Sealed:
    """A whole evidence folder of the made-up proof."""
    techniques, judged = make_proof()
    record = OpenRecord(folder, techniques, policy="version: 1\n", key_file=key_file)
    write_files_of_lanes(folder, record.expectation_sha256)
    return record.seal(judged, make_circumstances(**more))
