"""The door of the lab's server: nothing behind it sees a request that the guard has not let in."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response

from stockade.lab.web.answers import refused
from stockade.lab.web.guard import ON_EVERY_ANSWER, READING, Guard, Head, Refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Entrance:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # a WebSocket that is not accepted is refused; there are none here
        head = read_head(scope)
        guarded = _with_headers(send, head.path)
        answer = self._answer(head, scope)
        await (self._app if answer is None else answer)(scope, receive, guarded)

    def _answer(self, head: Head, scope: Scope) -> Response | None:
        """What the door itself answers; `None` lets the request in."""
        if (refusal := self._guard.refusal(head)) is not None:
            return refused(refusal)
        if head.path == "/" and head.method in READING:
            given = [
                value for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name == "token"
            ]
            if given:
                return self._sign_in(head, given[0])
        if not self._guard.is_signed_in(head):
            return _way_in(head)
        return None

    def _sign_in(self, head: Head, given: str) -> Response:
        """Take the token for a cookie, and out of the address, which histories and screenshots keep."""
        if not self._guard.admits(given) and not self._guard.is_signed_in(head):
            return _way_in(head)
        answer: Response
        if head.one("sec-fetch-site") in (None, "none", "same-origin"):
            answer = RedirectResponse("/", 303)
        else:
            # Followed from a link of another site, a redirect would come without the strict cookie.
            answer = HTMLResponse(_GO_ON)
        answer.set_cookie(
            self._guard.cookie_name, self._guard.cookie, path="/", httponly=True, samesite="strict"
        )
        return answer


def read_head(scope: MutableMapping[str, Any]) -> Head:
    """What the guard looks at."""
    return Head(
        scope["method"],
        scope["path"],
        [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
    )


def _way_in(head: Head) -> Response:
    """Who is not signed in learns how to, as a page or as an answer to a script."""
    if head.path.startswith("/api/"):
        return refused(
            Refusal(
                401,
                "not-signed-in",
                "this browser has not shown the token of this start of the lab",
                "open the address that `stockade lab` has printed",
            )
        )
    return HTMLResponse(_HOW_TO_GET_IN, 403)


def _with_headers(send: Send, path: str) -> Send:
    """Put on every answer what a browser must know, also on errors."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in ON_EVERY_ANSWER:
                headers[name] = value
            if "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return send_on


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">{head}<title>Stockade lab</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"></head>
<body>{body}</body></html>
"""
_HOW_TO_GET_IN = _PAGE.format(
    head="",
    body="<h1>This is the Stockade lab</h1><p>It lets in who has its address with the token. "
    "Open the whole address that <code>stockade lab</code> has printed in its terminal; "
    "it begins with <code>http://127.0.0.1</code> and ends with <code>?token=</code> and some letters.</p>"
    "<p>Each start has a new token: a page from an earlier start has to be opened again, "
    "and your progress is still there.</p>",
)
_GO_ON = _PAGE.format(
    head='<meta http-equiv="refresh" content="0;url=/">', body='<p><a href="/">Go on to the lab</a></p>'
)
