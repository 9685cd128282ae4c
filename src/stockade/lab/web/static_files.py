"""The files of the page: those that lie in the package's folder when the server starts, and no others."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from stockade.lab.web.answers import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER = Path(__file__).parent / "static"

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".woff2": "font/woff2",
}


class StaticFiles:
    """Serves files by a table, so that no spelling of a path can lead elsewhere.

    What a browser has is asked for again each time and answered with 304: a page of one version never
    runs with the scripts of another.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {f"/static/{path.relative_to(folder)}": path for path in _plain_files(folder)}
        self._files["/"] = folder / "index.html"

    async def answer(self, request: Request) -> Response:
        """The file of a path."""
        path = self._files.get(request.url.path)
        if path is None:
            raise Refused(404, "no-such-page", f"there is no {request.url.path[:200]}")
        data = path.read_bytes()
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=_KINDS[path.suffix])


def _plain_files(folder: Path) -> list[Path]:
    """Files of the kinds that a page uses; links lead out and are passed over."""
    found = []
    for base, _, names in os.walk(folder):  # does not follow links to folders
        for name in names:
            path = Path(base, name)
            if path.suffix in _KINDS and stat.S_ISREG(path.lstat().st_mode):
                found.append(path)
    return found
