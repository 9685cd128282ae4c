"""JSON out: values, refusals, and faults of ours."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from stockade.errors import HostError, IntegrityError, StockadeError, UserError
from stockade.lab.game.rounds import Conflict
from stockade.lab.progress.people import Missing
from stockade.lab.web.guard import Refusal

if TYPE_CHECKING:
    from starlette.requests import Request


class Refused(StockadeError):  # noqa: N818  # an answer, as a denial is a decision
    """A request that cannot be done as it was asked, with the status that says so."""

    def __init__(self, status: int, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(code, message, hint)
        self.status = status


def answered(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def download(answer: Response, name: str) -> Response:
    """An answer that a browser keeps as a file; the name is ours, of plain letters."""
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def refused(refusal: Refusal) -> Response:
    """Why not, as JSON."""
    return answered({"error": refusal.code, "message": refusal.message, "hint": refusal.hint}, refusal.status)


async def answer_error(_request: Request, error: Exception) -> Response:
    """What our errors and the router's come to."""
    if isinstance(error, Refused):
        return refused(Refusal(error.status, error.code, error.message, error.hint))
    if isinstance(error, UserError):
        return refused(Refusal(_status_of(error), error.code, error.message, error.hint))
    if isinstance(error, IntegrityError):
        return refused(Refusal(422, error.code, error.message, error.hint))
    if isinstance(error, HostError):
        return refused(Refusal(503, error.code, error.message, error.hint))
    if isinstance(error, HTTPException):
        code = {404: "no-such-page", 405: "no-such-method"}.get(error.status_code, "refused")
        return refused(Refusal(error.status_code, code, f"{error.detail}"))
    return await answer_fault(_request, error)


def _status_of(error: UserError) -> int:
    if isinstance(error, Missing):
        return 404
    return 409 if isinstance(error, Conflict) else 400


async def answer_fault(request: Request, error: Exception) -> Response:
    """A fault of ours: the learner reads a sentence, and the terminal everything."""
    print(f"stockade: internal: {request.method} {request.url.path[:200]!a}", file=sys.stderr)
    traceback.print_exception(error)
    return refused(
        Refusal(
            500,
            "fault",
            "the lab has a fault, which its terminal tells more about",
            "what you have done so far is kept; try again, and report it if it happens again",
        )
    )
