"""Screenshots and transcripts of a trial, as the page can hold them in itself."""

from __future__ import annotations

import base64
from pathlib import Path

from msgspec import Struct

from stockade.evidence.manifest import find_path_fault
from stockade.evidence.views import cut
from stockade.prove.trial import Try

PICTURE_LIMIT_BYTES = 600_000
"""Of one screenshot; a window of a browser without photographs is below a tenth of that."""
PAGE_LIMIT_BYTES = 24_000_000
"""Of all screenshots of one page, so that it opens on a telephone; what is beyond is named, not shown."""
_TRANSCRIPT_LIMIT = 12_000
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
        """All files of one execution, in the order in which the lane named them."""
        return tuple(self._open(name, path) for name, path in seen.files.items())

    def _open(self, name: str, path: str) -> Picture:
        file = self._folder / path
        if find_path_fault(path) or file.is_symlink() or not file.is_file():
            return Picture(name, path)
        kind = _KINDS.get(file.suffix.lower())
        if kind is None:
            return Picture(name, path, text=cut(file.read_text(errors="replace"), _TRANSCRIPT_LIMIT))
        data = file.read_bytes()
        if len(data) > min(PICTURE_LIMIT_BYTES, self._left_bytes):
            return Picture(name, path)
        self._left_bytes -= len(data)
        return Picture(name, path, source=f"data:{kind};base64,{base64.b64encode(data).decode()}")
