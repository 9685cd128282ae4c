"""What a learner has done and noted: progress, the gap log, signed results, export and reset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import Response
from starlette.routing import Route

from stockade.lab.web.answers import answered, download
from stockade.lab.web.body import read_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from stockade.lab.web.lab import Lab


class Confirmed(Struct, forbid_unknown_fields=True):
    confirm: str


class NewGap(Struct, forbid_unknown_fields=True, rename={"origin": "from"}):
    text: str
    origin: str | None = None


class GapChange(Struct, forbid_unknown_fields=True):
    text: str | None = None
    done: bool | None = None


def read_number(text: str) -> int:
    """A line's number; what is none has no line. Not by Starlette, which fails at five thousand digits."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""
    store = lab.store

    async def progress(request: Request) -> Response:
        return answered(await lab.as_learner(request, lambda who, now: store.review.progress(who.id, now)))

    async def export(request: Request) -> Response:
        value = await lab.as_learner(request, lambda who, now: store.archive.export(who.id, now))
        return download(answered(value), "stockade-lab-progress.json")

    async def reset(request: Request) -> Response:
        given = await read_body(request, Confirmed)
        await lab.as_learner(request, lambda who, _now: store.archive.reset(who.id, given.confirm))
        return answered({})

    async def gaps(request: Request) -> Response:
        return answered({"gaps": await lab.as_learner(request, lambda who, _now: store.desk.gaps(who.id))})

    async def add_gap(request: Request) -> Response:
        new = await read_body(request, NewGap)
        return answered(
            await lab.as_learner(
                request, lambda who, now: store.desk.add_gap(who.id, new.text, new.origin or "", now)
            )
        )

    async def change_gap(request: Request) -> Response:
        number = read_number(request.path_params["number"])
        change = await read_body(request, GapChange)
        return answered(
            await lab.as_learner(
                request, lambda who, _now: store.desk.change_gap(who.id, number, change.text, change.done)
            )
        )

    async def result(request: Request) -> Response:
        from stockade.evidence.keys import load_or_make_key

        number = request.path_params["number"]
        data = await lab.as_learner(
            request, lambda who, _now: store.proof.result(who.id, number, load_or_make_key())
        )
        return download(Response(data, media_type="application/json"), f"stockade-lab-{number}.json")

    async def share_card(request: Request) -> Response:
        from stockade.evidence.keys import load_or_make_key

        number = request.path_params["number"]
        svg = await lab.as_learner(
            request, lambda who, _now: store.proof.card(who.id, number, load_or_make_key())
        )
        return Response(svg, media_type="image/svg+xml")

    return [
        Route("/api/progress", progress, methods=["GET"]),
        Route("/api/progress/export", export, methods=["GET"]),
        Route("/api/progress/reset", reset, methods=["POST"]),
        Route("/api/gaps", gaps, methods=["GET"]),
        Route("/api/gaps", add_gap, methods=["POST"]),
        Route("/api/gaps/{number}", change_gap, methods=["PUT"]),
        Route("/api/rounds/{number}/result", result, methods=["GET"]),
        Route("/api/rounds/{number}/card.svg", share_card, methods=["GET"]),
    ]
