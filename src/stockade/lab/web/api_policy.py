"""Policy as the answer: a draft that is kept, findings while it is typed, the whole bank decided by it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from starlette.routing import Route

from stockade.lab.game.replay import lint_text, replay_text
from stockade.lab.game.task import tell_task
from stockade.lab.web.answers import answered
from stockade.lab.web.body import read_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stockade.lab.web.lab import Lab


class Text(Struct, forbid_unknown_fields=True):
    text: str


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""
    store = lab.store

    async def lint(request: Request) -> Response:
        text = (await read_body(request, Text)).text
        began = time.perf_counter()
        _, findings = await lab.work_hard(lambda: lint_text(text))
        return answered(replace(findings, ms=_ms_since(began)))

    async def replay(request: Request) -> Response:
        text = (await read_body(request, Text)).text
        began = time.perf_counter()
        result = await lab.work_hard(lambda: replay_text(text, store.book))
        return answered(replace(result, ms=_ms_since(began)))

    async def draft(request: Request) -> Response:
        return answered({"text": await lab.as_learner(request, lambda who, _now: store.desk.draft(who.id))})

    async def keep_draft(request: Request) -> Response:
        text = (await read_body(request, Text)).text
        await lab.as_learner(request, lambda who, now: store.desk.put_draft(who.id, text, now))
        return answered({"text": text})

    async def start(_request: Request) -> Response:
        return answered(await lab.work(lambda: tell_task(store.book)))

    return [
        Route("/api/policy/lint", lint, methods=["POST"]),
        Route("/api/policy/replay", replay, methods=["POST"]),
        Route("/api/policy/start", start, methods=["GET"]),
        Route("/api/policy", draft, methods=["GET"]),
        Route("/api/policy", keep_draft, methods=["PUT"]),
    ]


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
