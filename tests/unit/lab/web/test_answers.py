"""What the application answers, asked without a socket: its files, its refusals, and a fault of ours."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from stockade.errors import HostError, IntegrityError, UserError
from stockade.lab.game.rounds import Conflict
from stockade.lab.progress.people import Missing
from stockade.lab.web.answers import Refused
from stockade.lab.web.app import answering
from stockade.lab.web.static_files import FOLDER, StaticFiles


def ask(app: Any, path: str) -> tuple[int, dict[str, str], bytes]:
    """One GET by the ASGI protocol: status, headers, body."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [], "server": ("127.0.0.1", 1), "scheme": "http", "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:])


def failing(error: Exception) -> Starlette:
    async def fail(_request: Any) -> Any:
        raise error

    return answering([Route("/", fail)])


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UserError("a-code", "a line", "a hint"), 400),
        (Missing("a-code", "a line", "a hint"), 404),
        (Conflict("a-code", "a line", "a hint"), 409),
        (Refused(413, "a-code", "a line", "a hint"), 413),
        (IntegrityError("a-code", "a line", "a hint"), 422),
        (HostError("a-code", "a line", "a hint"), 503),
    ],
)
def test_our_errors_are_told_with_code_line_and_hint(error: Exception, status: int) -> None:
    got, headers, body = ask(failing(error), "/")
    assert got == status
    assert headers["content-type"] == "application/json"
    assert json.loads(body) == {"error": "a-code", "message": "a line", "hint": "a hint"}


def test_a_fault_of_ours_is_told_to_the_terminal_and_not_to_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """OWASP: error messages give away no stack, path or statement."""
    status, _, body = ask(failing(RuntimeError("secret /etc/path")), "/")
    assert status == 500
    told = json.loads(body)
    assert told["error"] == "fault"
    assert "secret" not in repr(told)
    assert "Traceback" not in repr(told)
    assert "secret /etc/path" in capsys.readouterr().err
    assert ask(failing(HTTPException(405, "no such method")), "/")[0] == 405


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "below").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "below" / "one.js").write_text("export {};")
    (tmp_path / "notes.txt").write_text("no kind of a page")
    (tmp_path.parent / "outside.js").write_text("outside")
    return tmp_path


def serving(folder: Path) -> Starlette:
    return answering([Route("/{path:path}", StaticFiles(folder).answer)])


def test_files_of_the_folder_are_served_with_their_kind(folder: Path) -> None:
    app = serving(folder)
    status, headers, body = ask(app, "/")
    assert (status, headers["content-type"], body) == (200, "text/html; charset=utf-8", b"<!doctype html>")
    status, headers, body = ask(app, "/static/below/one.js")
    assert (status, headers["content-type"], body) == (200, "text/javascript; charset=utf-8", b"export {};")
    assert headers["cache-control"] == "no-cache"


def test_links_folders_and_other_files_are_not_served(folder: Path) -> None:
    (folder / "linked.js").symlink_to(folder.parent / "outside.js")
    (folder / "linked").symlink_to(folder.parent)
    app = serving(folder)
    for path in (
        "/static/linked.js",
        "/static/linked/outside.js",
        "/static/../outside.js",
        "/static/below/../../outside.js",
        "/static/notes.txt",
        "/static/below",
        "/static/",
        "/index.html",
    ):
        assert ask(app, path)[0] == 404, path


def test_every_kind_of_file_in_the_shipped_folder_is_served() -> None:
    """Else a page would miss a part of itself, and only on a machine where nobody looks."""
    app = serving(FOLDER)
    for path in FOLDER.rglob("*"):
        if path.suffix in (".js", ".css", ".svg", ".html") and path.name != "index.html":
            assert ask(app, f"/static/{path.relative_to(FOLDER)}")[0] == 200, path
