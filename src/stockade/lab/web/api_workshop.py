"""The guided half day: where the learner stands, evidence that is verified, and the record at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response
from starlette.routing import Route

from stockade import __version__
from stockade.errors import UserError
from stockade.lab.web.answers import answered, download
from stockade.lab.web.body import read_body
from stockade.lab.workshop_progress import Progress, change_progress, parse_progress, tell_workshop
from stockade.lab.workshop_record import verify_folder

if TYPE_CHECKING:
    from starlette.requests import Request

    from stockade.lab.game.moment import Moment
    from stockade.lab.progress.people import Learner
    from stockade.lab.progress.store import Store
    from stockade.lab.web.lab import Lab


class Where(Struct, forbid_unknown_fields=True):
    path: str


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""
    store = lab.store

    async def look(request: Request) -> Response:
        return answered(await lab.as_learner(request, lambda who, _now: tell(store, who)))

    async def keep(request: Request) -> Response:
        change = msgspec.json.encode(await read_body(request, dict))

        def put(who: Learner, now: Moment) -> dict[str, Any]:
            put_progress(store, who, now, lambda before: change_progress(before, change))
            return tell(store, who)

        return answered(await lab.as_learner(request, put))

    async def verify(request: Request) -> Response:
        path = (await read_body(request, Where)).path
        found = await lab.work_hard(lambda: verify_folder(path))
        if found["verifies"]:  # the record at the end is to name it
            await lab.as_learner(
                request,
                lambda who, now: put_progress(
                    store, who, now, lambda before: replace(before, evidence=found["folder"])
                ),
            )
        return answered(found)

    async def record(request: Request) -> Response:
        who, now = await lab.as_learner(request, lambda who, now: (who, now))
        data = await lab.work_hard(lambda: write_record(lab, who, now))
        return download(Response(data, media_type="application/json"), "my-half-day.json")

    return [
        Route("/api/workshop", look, methods=["GET"]),
        Route("/api/workshop", keep, methods=["PUT"]),
        Route("/api/workshop/verify", verify, methods=["POST"]),
        Route("/api/workshop/record", record, methods=["GET"]),
    ]


def tell(store: Store, learner: Learner) -> dict[str, Any]:
    """All that the page shows."""
    return tell_workshop(load_progress(store, learner), has_policy=bool(store.desk.draft(learner.id)))


def load_progress(store: Store, learner: Learner) -> Progress:
    """Where the learner stands; nowhere yet, if what was kept is of another version."""
    try:
        return parse_progress(msgspec.json.encode(store.desk.workshop(learner.id)))
    except UserError:
        return Progress()


def put_progress(
    store: Store, learner: Learner, now: Moment, change: Callable[[Progress], Progress]
) -> Progress:
    """Change where the learner stands; two tabs do not undo each other's changes."""
    with store.database.change():
        progress = change(load_progress(store, learner))
        store.desk.put_workshop(learner.id, msgspec.to_builtins(progress), now)
    return progress


def write_record(lab: Lab, learner: Learner, now: Moment) -> bytes:
    """The signed record of the learner's half day.

    Raises:
        UserError: Something is missing still: the policy, the evidence, or an answer.
        IntegrityError: The evidence does not verify.
    """
    from stockade.evidence.keys import load_or_make_key
    from stockade.lab.game.present import tell_time
    from stockade.lab.workshop_record import Played, replay_on, see_evidence, workshop_record

    progress = load_progress(lab.store, learner)
    text = lab.store.desk.draft(learner.id)
    if not text:
        raise UserError("no-policy", "there is no policy of yours yet", "write one on the policy page")
    if not progress.evidence:
        raise UserError(
            "no-evidence", "no evidence of yours was verified yet", "step “verify” of the half day"
        )
    return workshop_record(
        learner=learner.name,
        made=tell_time(now.wall_ms),
        software=__version__,
        bank=Played(name=lab.pack.name, digest=lab.pack.digest),
        done=progress.done,
        policy_text=text,
        replayed=replay_on(lab.pack)(text),
        evidence=see_evidence(Path(progress.evidence)),
        answers=progress.notes,
        key=load_or_make_key(),
    )
