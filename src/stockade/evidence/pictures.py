"""Screenshots and transcripts of a trial, as the page can hold them in itself."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stockade.evidence.manifest import find_path_fault
from stockade.evidence.views import cut
from stockade.prove.trial import Try

PICTURE_LIMIT_BYTES = 600_000
"""Of one screenshot; a window of a browser without photographs is below a tenth of that."""
PAGE_LIMIT_BYTES = 24_000_000
"""Of all screenshots of one page, so that it opens on a telephone; what is beyond is named, not shown."""
_TRANSCRIPT_LIMIT = 12_000
_ORDER = {"before": 0, "after": 1, "transcript": 3}
_KINDS = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp"}


class Picture(Struct, frozen=True):
    """A file of a trial: a picture as data URI, or text; neither if it is too large or gone."""

    name: str
    path: str
    source: str = ""
    text: str = ""


class Album:
    """Reads files below the evidence's folder, and keeps count of how much the page holds already."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left_bytes = PAGE_LIMIT_BYTES

    def open_files(self, seen: Try) -> tuple[Picture, ...]:
        """All files of one execution, pictures first; one that has two names is shown once."""
        names: dict[str, list[str]] = {}
        for name in sorted(seen.files, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)):
            names.setdefault(seen.files[name], []).append(name)
        return tuple(self._open(" and ".join(same), path) for path, same in names.items())

    def _open(self, name: str, path: str) -> Picture:
        file = self._folder / path
        if find_path_fault(path) or file.is_symlink() or not file.is_file():
            return Picture(name, path)
        kind = _KINDS.get(file.suffix.lower())
        if kind is None:
            text = describe_transcript(file.read_text(errors="replace"))
            return Picture(name, path, text=cut(text, _TRANSCRIPT_LIMIT))
        data = file.read_bytes()
        if len(data) > min(PICTURE_LIMIT_BYTES, self._left_bytes):
            return Picture(name, path)
        self._left_bytes -= len(data)
        return Picture(name, path, source=f"data:{kind};base64,{base64.b64encode(data).decode()}")


def describe_transcript(text: str) -> str:
    """An agent's session as lines to read, if this is one (`browser.transcript`); else the text as it is."""
    try:
        session = msgspec.json.decode(text)
        steps = [_describe_step(step) for step in session["steps"]]
        head = f"{session['agent']} agent, told: {session['prompt']}"
        return "\n".join([head, "", *steps, "", f"ended: {session['ended']}"])
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return text


def _describe_step(step: dict[str, Any]) -> str:
    action = dict(step["action"])
    what = " ".join(
        [str(action.pop("action")), *(f"{value}" for value in action.values() if value is not None)]
    )
    came = ": ".join(str(step[key]) for key in ("error", "came") if step.get(key))
    saw = (
        f"\n   acted on screenshot {step['screenshot'][:16]}… of {step['address']}"
        if step["screenshot"]
        else ""
    )
    return f"{step['number']}. {what}{saw}\n   {came}"
