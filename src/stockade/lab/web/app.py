"""The lab's server as one ASGI application: the door, then the pages and the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from stockade.errors import StockadeError
from stockade.lab.web import api_live, api_policy, api_progress, api_rounds, api_state, api_workshop
from stockade.lab.web.answers import answer_error, answer_fault
from stockade.lab.web.entrance import Entrance
from stockade.lab.web.static_files import StaticFiles

if TYPE_CHECKING:
    from stockade.lab.web.guard import Guard
    from stockade.lab.web.lab import Lab


def build_app(guard: Guard, lab: Lab) -> Entrance:
    """Everything that the server answers."""
    routes = [
        *api_state.routes(lab),
        *api_rounds.routes(lab),
        *api_live.routes(lab),
        *api_policy.routes(lab),
        *api_progress.routes(lab),
        *api_workshop.routes(lab),
        Route("/{path:path}", StaticFiles().answer, methods=["GET"]),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            StockadeError: answer_error,
            HTTPException: answer_error,
            Exception: answer_fault,
        },
    )
    return Entrance(app, guard)
