"""The lab's server as one ASGI application: the door, then the pages and the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
    from starlette.requests import Request
    from starlette.responses import Response

    from stockade.lab.web.guard import Guard
    from stockade.lab.web.lab import Lab

    Endpoint = Callable[[Request], Awaitable[Response]]


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
    return Entrance(answering(routes), guard)


def answering(routes: list[Route]) -> Starlette:
    """An application of these routes that answers whatever goes wrong in them as well."""
    told = [Route(one.path, _tell_errors(one.endpoint), methods=list(one.methods or ())) for one in routes]
    return Starlette(routes=told, exception_handlers={HTTPException: answer_error})


def _tell_errors(endpoint: Endpoint) -> Endpoint:
    """Not by Starlette's handler for `Exception`: that raises it once more behind the answer, and uvicorn
    then cuts the connection while the page's next request may be on its way.
    """

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except StockadeError as error:
            return await answer_error(request, error)
        except HTTPException:
            raise
        except Exception as error:  # noqa: BLE001  # one request is one flow: it ends, the others go on
            return await answer_fault(request, error)

    return answer
