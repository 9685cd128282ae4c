"""`/api/live`: make the attempt for real, once the learner has called it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.routing import Route

from stockade.lab.game.shown import EventDone
from stockade.lab.progress.unanswered import is_unanswered
from stockade.lab.web.answers import Refused, answered
from stockade.lab.web.body import read_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stockade.lab.game.moment import Moment
    from stockade.lab.pack.scenario import Scenario
    from stockade.lab.progress.people import Learner
    from stockade.lab.web.lab import Lab


class Wanted(Struct, forbid_unknown_fields=True):
    """A scenario by its number, or an event of a round by its place."""

    scenario: str | None = None
    round: str | None = None
    index: int | None = None


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""

    async def try_live(request: Request) -> Response:
        wanted = await read_body(request, Wanted)
        learner, scenario = await lab.as_learner(
            request, lambda who, now: (who, find_scenario(lab, who, wanted, now))
        )
        return answered(await lab.live.try_live(learner.id, scenario))

    async def look(request: Request) -> Response:
        learner = await lab.as_learner(request, lambda who, _now: who)
        return answered({**lab.live.state(), "before": lab.live.line.before(learner.id)})

    return [Route("/api/live", try_live, methods=["POST"]), Route("/api/live", look, methods=["GET"])]


def find_scenario(lab: Lab, learner: Learner, wanted: Wanted, now: Moment) -> Scenario:
    """What is to be tried. While a learner still has to call it, its result would be the answer.

    Raises:
        Refused: It is not answered yet, or there is no such event.
    """
    number = wanted.scenario
    if wanted.round is not None and wanted.index is not None:
        events = lab.store.play.round(learner.id, wanted.round, now).events
        event = next((one for one in events if one.index == wanted.index), None)
        if not isinstance(event, EventDone):
            raise _not_yet()
        number = event.feedback.scenario
    scenario = lab.pack.find(number) if number else None
    if scenario is None:
        raise Refused(404, "no-such-scenario", "say which: a scenario, or a round and an index")
    if is_unanswered(lab.store.database, learner.id, scenario.id):
        raise _not_yet()
    return scenario


def _not_yet() -> Refused:
    return Refused(
        409,
        "not-answered-yet",
        "this event waits for your call; what really happens would be the answer",
        "answer it first",
    )
