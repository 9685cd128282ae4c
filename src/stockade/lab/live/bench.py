"""The bench: one range, in which attempts of a pack are tried by warm workers, one after the other.

Runs in *host* of its own range. Orders come in as JSON lines, results go out as JSON lines; the first line
out says that it is sealed and ready. For each phase and identity that the pack's live rows need, a
worker waits; a try uses it up, and its replacement is started while the learner reads the result.

Usage: ``python -m stockade.lab.live.bench PACK DIGEST`` (inside the range).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from stockade.decision.attempt_line import parse_attempt_line
from stockade.decision.engine import Engine
from stockade.errors import HostError, StockadeError, UserError
from stockade.lab.live import findings
from stockade.lab.live.card import write_live_card
from stockade.lab.live.plan import plan_steps
from stockade.lab.live.result import LiveResult, Order, State, order_for
from stockade.lab.live.surroundings import (
    PAGE,
    find_missing,
    find_paths,
    known_addresses,
    place_stand_in,
    prepare_template,
    zone_for,
)
from stockade.lab.live.words import describe_said, has_answered, has_started
from stockade.lab.live.worker import Worker, WorkerFailed
from stockade.lab.pack.load import load_pack
from stockade.lab.pack.pack import Pack
from stockade.lab.pack.scenario import Live, Scenario
from stockade.policy.load import load_policy
from stockade.policy.model import Policy
from stockade.prove.sealed import sealed_proof
from stockade.prove.world_client import World
from stockade.vocabulary import Identity, Phase, Verdict

READY = b'{"ready":true}'
Kind = tuple[Phase, Identity]


class Bench:
    """Tries attempts in this range.

    Raises:
        ContainmentError: This network has a way out; nothing was tried.
        HostError: There is no world here.
    """

    def __init__(self, pack: Pack) -> None:
        if sealed_proof().device is None:
            raise HostError("no-range", "a bench runs in a range and nowhere else", "stockade lab check")
        self._pack = pack
        self._base = Path(tempfile.mkdtemp(prefix="bench-"))
        self._base.chmod(0o755)
        self._world = World()
        self._template = self._base / "template"
        self._card = write_live_card(pack.policy, pack.folder, self._base / "card")
        self._live_policy = load_policy(self._card)
        tried = [one for one in pack.scenarios if one.live is Live.YES]
        prepare_template(self._template, self._world.ca_path, tried)
        self._environment = _environment(self._base, self._live_policy)
        self._known = known_addresses(pack.scenarios)
        self._waiting: dict[Kind, list[Worker]] = {}
        self._engines: dict[Kind, Engine] = {}
        self._wanted = count_wanted(tried)

    def close(self) -> None:
        for worker in [worker for waiting in self._waiting.values() for worker in waiting]:
            worker.close()
        shutil.rmtree(self._base, ignore_errors=True)

    def warm_up(self) -> None:
        """Start the workers that are not there, and return at once."""
        for kind, count in self._wanted.items():
            waiting = self._waiting.setdefault(kind, [])
            for worker in [one for one in waiting if not one.is_alive()]:  # died while it waited
                waiting.remove(worker)
                worker.close()
            while len(waiting) < count:
                waiting.append(self._start(kind))

    def wait_until_warm(self) -> None:
        """Wait for the first workers, so that a host which cannot contain says so before the first try.

        Raises:
            HostError: A contained run does not start here.
        """
        self.warm_up()
        try:
            for waiting in self._waiting.values():
                waiting[0].wait_until_ready()
        except WorkerFailed as problem:
            raise HostError("no-contained-run", str(problem), "stockade doctor") from problem

    def perform(self, order: Order) -> LiveResult:
        """Try one scenario."""
        started = time.monotonic()
        try:
            scenario = _scenario(order)
            if missing := find_missing(scenario):
                return LiveResult(state=State.UNAVAILABLE, why=missing, scenario=order.id)
            return self._try(order, scenario, started)
        except (StockadeError, WorkerFailed) as problem:
            return LiveResult(state=State.FAILED, why=str(problem), scenario=order.id)
        except Exception as problem:  # noqa: BLE001  # one try says nothing; the bench goes on with the next
            return LiveResult(
                state=State.FAILED, why=f"{type(problem).__name__}: {problem}", scenario=order.id
            )

    def _try(self, order: Order, scenario: Scenario, started: float) -> LiveResult:
        steps = plan_steps(scenario)
        worker = self._take((scenario.phase, scenario.identity))
        try:
            place_stand_in(worker.workspace, scenario)
            self._set_world(scenario)
            said = worker.do(steps)
            arrivals, packets, questions = self._world.everything()
            run, records, since = worker.records()
            page = steps[0] if scenario.came_from is not None else None
            deciding = findings.find_deciding(since, steps[-1])
            arrived = findings.list_arrived(arrivals, packets, page)
            asked = tuple(dict.fromkeys(str(one["name"]) for one in questions))
            has_run = has_started(said) or worker.has_witness()
        finally:
            worker.close()
        closing = findings.describe_closing(records)
        problem = _find_problem(deciding, closing)
        engine = self._engine((scenario.phase, scenario.identity))
        foreign = [name for name in asked if not _may_be_asked(engine, name)]
        denied = order.key.verdict is Verdict.DENY if deciding is None else deciding["verdict"] == "deny"
        return LiveResult(
            state=State.FAILED if problem else State.DONE,
            why=problem or "",
            note="" if deciding is None else findings.explain_record(deciding),
            scenario=order.id,
            saw=tuple(describe_said(said)),
            record=None if deciding is None else findings.shorten(deciding),
            records=tuple(records),
            arrived=tuple(arrived),
            asked=asked,
            ran=has_run or has_answered(said),
            leaked=tuple(findings.find_leaks(denied, arrived, foreign, has_run)),
            agrees={} if deciding is None else findings.compare(order, deciding),
            closing=closing,
            run=run,
            ms=round((time.monotonic() - started) * 1000),
        )

    def _take(self, kind: Kind) -> Worker:
        waiting = self._waiting.setdefault(kind, [])
        self._wanted.setdefault(kind, 1)
        while waiting and not waiting[0].is_alive():
            waiting.pop(0).close()
        worker = waiting.pop(0) if waiting else self._start(kind)
        try:
            worker.wait_until_ready()
        except WorkerFailed:
            worker.close()
            raise
        return worker

    def _start(self, kind: Kind) -> Worker:
        return Worker(self._base, self._template, self._card, *kind, self._environment)

    def _set_world(self, scenario: Scenario) -> None:
        self._world.reset()
        self._world.set_dns(zone_for(scenario, self._pack.policy, self._known))
        self._world.set_pages(dict.fromkeys(find_paths(scenario), PAGE))
        if scenario.came_from is not None:
            place = scenario.came_from.partition("://")[2]
            place = place if "/" in place else place + "/"
            self._world.set_redirects({place.partition("?")[0]: scenario.words[-1]})

    def _engine(self, kind: Kind) -> Engine:
        if kind not in self._engines:
            self._engines[kind] = Engine(self._live_policy, *kind)
        return self._engines[kind]

    @cached_property
    def by_id(self) -> dict[str, Order]:
        """The pack's own scenarios."""
        return {one.id: order_for(one) for one in self._pack.scenarios}


def count_wanted(scenarios: Iterable[Scenario]) -> dict[Kind, int]:
    """How many workers of each kind shall wait: one, and two of the kind that is wanted most often."""
    counts = Counter((one.phase, one.identity) for one in scenarios)
    most = counts.most_common(1)
    return {kind: 2 if most and kind == most[0][0] else 1 for kind in counts}


def _scenario(order: Order) -> Scenario:
    """The order as a scenario, for what reads scenarios."""
    from ipaddress import ip_address

    fields: dict[str, Any] = {name: getattr(order, name) for name in Order.__struct_fields__}
    fields["answers"] = tuple(map(ip_address, order.answers))
    fields |= dict.fromkeys(("event", "stated_reason", "cue", "near", "source"), "")  # of no account here
    return Scenario(tier=1, **fields)


def _find_problem(deciding: Mapping[str, Any] | None, closing: Mapping[str, Any]) -> str | None:
    if deciding is None:
        return "the ledger holds no record of the attempt"
    if not closing["complete"]:
        return "the run's ledger was not closed as complete"
    return None


def _may_be_asked(engine: Engine, name: str) -> bool:
    return engine.decide(parse_attempt_line(["dns", name])).verdict is not Verdict.DENY


def _environment(base: Path, policy: Policy) -> dict[str, str]:
    """What `stockade run` gets: a home of ours, plain folders of programs, and made-up credentials."""
    home = base / "home"
    (home / ".config" / "tool").mkdir(parents=True)
    (home / ".config" / "tool" / "token").write_text("made-up\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "GIT_", "PYTHON"))}
    secrets = {
        rule.credential.env: "made-up-credential" for rule in policy.rules if rule.credential is not None
    }
    folders = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    return {**kept, **secrets, "HOME": str(home), "PATH": folders, "PYTHONDONTWRITEBYTECODE": "1"}


def main() -> int:
    """Serve orders until there are no more; SIGTERM ends what runs and then us."""
    signal.signal(signal.SIGTERM, _leave)
    bench = None
    try:
        bench = Bench(_load(Path(sys.argv[1]), sys.argv[2]))
        bench.wait_until_warm()
        _say(READY)
        for line in sys.stdin.buffer:
            order = msgspec.json.decode(line, type=Order | str)  # a scenario of the pack, or a whole one
            _say(msgspec.json.encode(bench.perform(bench.by_id[order] if isinstance(order, str) else order)))
            bench.warm_up()
    except StockadeError as problem:
        print(f"bench: {problem}", *([problem.hint] if problem.hint else []), sep="\n", file=sys.stderr)
        return problem.exit_code
    finally:
        if bench is not None:
            bench.close()
    return 0


def _load(file: Path, digest: str) -> Pack:
    """The pack that whoever started us has read, or none: tries under another card would say nothing."""
    pack = load_pack(file)
    if pack.digest != digest:
        raise UserError("pack-changed", f"{file} was changed since it was read", "start again")
    return pack


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _leave(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
