"""The guided half day: where the learner stands, evidence that is verified, and the record at the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from starlette.responses import Response
from starlette.routing import Route

from stockade import __version__
from stockade.errors import UserError
from stockade.lab.web.answers import answered, download
from stockade.lab.web.body import read_body
from stockade.lab.workshop import Progress, parse_progress, tell_workshop

if TYPE_CHECKING:
    from starlette.requests import Request

    from stockade.lab.game.moment import Moment
    from stockade.lab.progress.people import Learner
    from stockade.lab.progress.store import Store
    from stockade.lab.web.lab import Lab
    from stockade.lab.workshop_record import Replayed

_PATH_LIMIT = 4096


class Where(Struct, forbid_unknown_fields=True):
    path: str


def routes(lab: Lab) -> list[Route]:
    """Paths and their handlers."""
    store = lab.store

    async def look(request: Request) -> Response:
        progress = await lab.as_learner(request, lambda who, _now: load_progress(store, who))
        return answered(tell_workshop(progress))

    async def keep(request: Request) -> Response:
        given = await read_body(request, dict)
        progress = parse_progress(msgspec.json.encode(given))
        value = msgspec.to_builtins(progress)
        await lab.as_learner(request, lambda who, now: store.desk.put_workshop(who.id, value, now))
        return answered(tell_workshop(progress))

    async def verify(request: Request) -> Response:
        path = (await read_body(request, Where)).path
        return answered(await lab.work_hard(lambda: verify_folder(path)))

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


def load_progress(store: Store, learner: Learner) -> Progress:
    """Where the learner stands; nowhere yet, if what was kept is of another version."""
    try:
        return parse_progress(msgspec.json.encode(store.desk.workshop(learner.id)))
    except UserError:
        return Progress()


def parse_folder(text: str) -> Path:
    """A folder as somebody names it on their own machine; from where the server was started.

    Raises:
        UserError: It is no path.
    """
    if not text.strip() or len(text) > _PATH_LIMIT or "\0" in text:
        raise UserError("bad-path", "name the folder that `stockade prove --out` has written")
    try:
        return Path(text.strip()).expanduser()
    except RuntimeError as error:  # ~somebody who does not exist
        raise UserError("bad-path", f"{error}") from error


def verify_folder(text: str) -> dict[str, Any]:
    """What `stockade evidence verify` says of a folder.

    Raises:
        UserError: There is none.
    """
    from stockade.evidence.report import report_lines, report_object
    from stockade.evidence.verify import verify_evidence

    folder = parse_folder(text)
    report = verify_evidence(folder)
    return {**report_object(folder, report), "lines": report_lines(folder, report)}


def write_record(lab: Lab, learner: Learner, now: Moment) -> bytes:
    """The signed record of the learner's half day.

    Raises:
        UserError: Something is missing still: the policy, the evidence, or an answer.
        IntegrityError: The evidence does not verify.
    """
    from stockade.evidence.keys import load_or_make_key
    from stockade.lab.game.present import tell_time
    from stockade.lab.workshop_record import Played, see_evidence, workshop_record

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
        replayed=count_replay(lab, text),
        evidence=see_evidence(parse_folder(progress.evidence)),
        answers=progress.notes,
        key=load_or_make_key(),
    )


def count_replay(lab: Lab, text: str) -> Replayed:
    """The numbers of a replay."""
    from stockade.lab.game.replay import replay_text
    from stockade.lab.workshop_record import Replayed

    found = replay_text(text, lab.store.book)
    return Replayed(
        leaks=len(found.leaks),
        breakages=len(found.breakages),
        right=found.right,
        total=found.total,
        waiting=len(found.waiting),
    )
