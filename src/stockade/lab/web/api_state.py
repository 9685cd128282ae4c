"""The page as a whole: what there is to play, who plays, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict
from starlette.routing import Route

from stockade import __version__
from stockade.lab.game.tiers import TIERS
from stockade.lab.game.words import tell_words
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.web.answers import answered
from stockade.lab.web.body import read_body

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from stockade.lab.game.moment import Moment
    from stockade.lab.progress.people import Learner
    from stockade.lab.web.lab import Lab

_YEAR_S = 365 * 86_400


class Settings(Struct, forbid_unknown_fields=True):
    clock: str | None = None
    theme: str | None = None
    shortcuts: str | None = None


class Name(Struct, forbid_unknown_fields=True):
    name: str


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""
    store = lab.store
    fixed = {
        "version": __version__,
        "bank": {"name": lab.pack.name, "digest": lab.pack.digest, "count": len(lab.pack.scenarios)},
        "tiers": [
            {"tier": one.tier, "clock_s": one.clock_s, "noise": one.noise, "label": one.label}
            for one in TIERS
        ],
        "words": tell_words(shipped_bank()),
    }

    def tell(learner: Learner, now: Moment) -> dict[str, Any]:
        return {
            **fixed,
            "learner": learner,
            "learners": store.people.all(),
            "live": lab.live.state(),
            "open_round": store.play.open_round(learner.id),
            "due": store.review.due_count(learner.id, now),
            "settings": store.people.settings(learner.id),
            "progress": store.review.tally(learner.id),
        }

    async def state(request: Request) -> Response:
        lab.live.wake()  # who looks at the page may soon press "run it", and the bench takes a moment
        return answered(await lab.as_learner(request, tell))

    async def settings(request: Request) -> Response:
        wanted = await read_body(request, Settings)
        given = {name: value for name, value in asdict(wanted).items() if value is not None}
        return answered(
            await lab.as_learner(request, lambda who, _now: store.people.change_settings(who.id, given))
        )

    async def learners(request: Request) -> Response:
        wanted = await read_body(request, Name)
        now = lab.now()
        learner = await lab.work(lambda: store.people.enter(wanted.name, now))
        answer = answered({"learner": learner})
        answer.set_cookie(
            lab.learner_cookie, learner.id, max_age=_YEAR_S, path="/", httponly=True, samesite="strict"
        )
        return answer

    async def card(_request: Request) -> Response:
        text = lab.pack.policy_text
        return answered({"name": lab.pack.policy.source, "text": text, "lines": text.splitlines()})

    return [
        Route("/api/state", state, methods=["GET"]),
        Route("/api/settings", settings, methods=["PUT"]),
        Route("/api/learners", learners, methods=["POST"]),
        Route("/api/card", card, methods=["GET"]),
    ]
