"""Rounds and drills: begin, look, answer, and what they showed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.routing import Route

from stockade.lab.progress.play import AlreadyAnswered
from stockade.lab.web.answers import answered
from stockade.lab.web.body import read_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stockade.lab.web.lab import Lab


class NewRound(Struct, forbid_unknown_fields=True):
    tier: int
    seed: str | None = None


class NewDrill(Struct, forbid_unknown_fields=True):
    kind: str


class Answer(Struct, forbid_unknown_fields=True):
    index: int
    decision: str
    risk: str
    control: str


class Place(Struct, forbid_unknown_fields=True):
    index: int


class Nothing(Struct):
    pass


class Note(Struct, forbid_unknown_fields=True):
    key: str
    text: str


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""
    play = lab.store.play

    async def begin_round(request: Request) -> Response:
        wanted = await read_body(request, NewRound)
        return answered(
            await lab.as_learner(
                request, lambda who, now: play.begin_round(who.id, wanted.tier, wanted.seed, now)
            )
        )

    async def begin_drill(request: Request) -> Response:
        wanted = await read_body(request, NewDrill)
        return answered(
            await lab.as_learner(request, lambda who, now: play.begin_drill(who.id, wanted.kind, now))
        )

    async def rounds(request: Request) -> Response:
        return answered(await lab.as_learner(request, lambda who, _now: play.rounds(who.id)))

    async def one_round(request: Request) -> Response:
        number = request.path_params["number"]
        return answered(await lab.as_learner(request, lambda who, now: play.round(who.id, number, now)))

    async def answer(request: Request) -> Response:
        number = request.path_params["number"]
        given = await read_body(request, Answer)
        words = (given.decision, given.risk, given.control)
        try:
            told = await lab.as_learner(
                request, lambda who, now: play.answer(who.id, number, given.index, words, now)
            )
        except AlreadyAnswered as first:
            said = {"error": first.code, "message": first.message, "hint": first.hint}
            return answered({**said, "feedback": first.feedback}, 409)
        return answered(told)

    async def hint(request: Request) -> Response:
        number = request.path_params["number"]
        at = await read_body(request, Place)
        return answered(await lab.as_learner(request, lambda who, _now: play.hint(who.id, number, at.index)))

    async def show(request: Request) -> Response:
        number = request.path_params["number"]
        at = await read_body(request, Place)
        return answered(
            await lab.as_learner(request, lambda who, now: play.show(who.id, number, at.index, now))
        )

    async def leave(request: Request) -> Response:
        number = request.path_params["number"]
        await read_body(request, Nothing)
        return answered(await lab.as_learner(request, lambda who, now: play.leave(who.id, number, now)))

    async def debrief(request: Request) -> Response:
        number = request.path_params["number"]
        return answered(await lab.as_learner(request, lambda who, _now: play.debrief(who.id, number)))

    async def notes(request: Request) -> Response:
        number = request.path_params["number"]
        note = await read_body(request, Note)
        await lab.as_learner(request, lambda who, _now: play.put_note(who.id, number, note.key, note.text))
        return answered({"key": note.key, "text": note.text})

    return [
        Route("/api/rounds", begin_round, methods=["POST"]),
        Route("/api/rounds", rounds, methods=["GET"]),
        Route("/api/drills", begin_drill, methods=["POST"]),
        Route("/api/rounds/{number}", one_round, methods=["GET"]),
        Route("/api/rounds/{number}/answers", answer, methods=["POST"]),
        Route("/api/rounds/{number}/hints", hint, methods=["POST"]),
        Route("/api/rounds/{number}/show", show, methods=["POST"]),
        Route("/api/rounds/{number}/leave", leave, methods=["POST"]),
        Route("/api/rounds/{number}/debrief", debrief, methods=["GET"]),
        Route("/api/rounds/{number}/notes", notes, methods=["PUT"]),
    ]
