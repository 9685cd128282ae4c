"""The task of policy as the answer: what the executor needs, in words, and a text to begin with.

It is derived from the pack's own policy and from the legitimate events that it lets through. What no one
can guess is told in full: hosts, purposes, phases, methods, paths, ports, private addresses, programs.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from stockade.lab.game.book import Book
from stockade.lab.game.difference import take_apart
from stockade.lab.game.engine_words import join_words
from stockade.lab.pack.scenario import Scenario
from stockade.policy.model import Rule
from stockade.vocabulary import Phase, PlaceClass, Verdict

_EXAMPLES = 3
_SHOWN = 120

_PURPOSE = {
    PlaceClass.DOCS: "reads documentation",
    PlaceClass.MODEL_PROVIDER: "asks its model, without a key of its own",
    PlaceClass.MIRROR: "fetches what was vetted",
    PlaceClass.CODE_HOST: "fetches one repository, and pushes nothing",
    PlaceClass.DATASET_HUB: "fetches its training data",
    PlaceClass.RUBRIC: "reads rubrics and hands results in",
    PlaceClass.SEARCH: "asks the declared search tool",
    PlaceClass.INTERNAL: "calls a declared service inside",
    PlaceClass.MESSAGING: "reports to the team's own channel",
    PlaceClass.OBJECT_STORE: "stores the results of this run",
    PlaceClass.TELEMETRY: "reports to the run's own collector",
    PlaceClass.APPROVED_TEST: "tests an approved site",
    PlaceClass.LOCAL: "runs the programs of its job",
}


class Example(Struct, frozen=True):
    """An attempt that has to pass."""

    attempt: str
    phase: str
    identity: str
    answers: tuple[str, ...]


class Need(Struct, frozen=True, rename={"place": "class"}):
    """One place that the work needs.

    Attributes:
        watched: It has to pass under record (`proxy`), not unseen.
        phases, identities: When, and for whom.
        methods, paths: All that the work uses there; empty for what passes unseen, `paths` also where
            the card names none.
        ports: With the scheme before each: `http:80`; empty for programs.
        addresses: Private ones that the name resolves to.
        programs: All that the work starts.
    """

    place: str
    host: str
    what: str
    watched: bool
    examples: tuple[Example, ...]
    phases: tuple[str, ...]
    identities: tuple[str, ...]
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class Task(Struct, frozen=True):
    """What is to be written, and a text to begin with."""

    text: str
    task: str
    needs: tuple[Need, ...]


def tell_task(book: Book) -> Task:
    """The task and the starting text of a pack."""
    needed = [row for row in book.pack.scenarios if row.is_legitimate]
    needs = []
    for rule in book.pack.policy.rules:
        rows = [row for row in needed if book.decide(row).rule == rule.origin]
        if rows and rule.level is not Verdict.DENY:
            needs.append(_tell_place(rule, rows))
    commands = [row for row in needed if row.words[0] == "exec"]
    if commands:
        needs.append(_tell_programs(commands))
    return Task(_starting_text(), _TASK, tuple(needs))


def _tell_place(rule: Rule, rows: list[Scenario]) -> Need:
    watched = rows[0].key.verdict is Verdict.PROXY
    place = rule.place or PlaceClass.UNKNOWN
    lines = [take_apart(row) for row in rows]
    methods = _each(line["method"] for line in lines) if watched else ()
    paths = _each(line["path"] for line in lines) if watched and rule.paths else ()
    ports = _each(f"{line['scheme']}:{line['port']}" for line in lines if line["scheme"])
    addresses = _each(str(one) for row in rows for one in row.answers if one.is_private)
    more = [
        f"It sends {join_words(methods)}" if methods else "",
        f"for {' or '.join(paths)}" if paths else "",
        "in plain HTTP" if any(port.startswith("http:") for port in ports) else "",
        *(f"on port {port.partition(':')[2]}" for port in ports if port != "https:443"),
        f"the name resolves to {join_words(addresses)}" if addresses else "",
    ]
    told = ", ".join(filter(None, more)).replace(", for ", " for ", 1)
    what = _tell_what(rows, place, rule.why)
    return Need(
        str(place),
        rule.host.text,
        f"{what} {told[0].upper()}{told[1:]}." if told else what,
        watched,
        tuple(_examples(rows)),
        _phases(rows),
        _each(str(row.identity) for row in rows),
        methods,
        paths,
        ports,
        addresses,
    )


def _tell_programs(rows: list[Scenario]) -> Need:
    programs = _each(row.words[1] for row in rows)
    what = f"{_tell_what(rows, PlaceClass.LOCAL, None)} They are {join_words(programs)}."
    identities = _each(str(row.identity) for row in rows)
    return Need(
        "local", "programs", what, False, tuple(_examples(rows)), _phases(rows), identities, programs=programs
    )


def _phases(rows: list[Scenario]) -> tuple[str, ...]:
    seen = {row.phase for row in rows}
    return tuple(str(phase) for phase in Phase if phase in seen)


def _each(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(words) if word)


def _tell_what(rows: list[Scenario], place: PlaceClass, why: str | None) -> str:
    """Who does what there, and when: `In setup the agent fetches what was vetted.`"""
    who = join_words(_each(f"the {row.identity}" for row in rows))
    named = _phases(rows)
    phases = "every phase" if len(named) == len(Phase) else join_words(named)
    what = _PURPOSE.get(place, "calls what the task names")
    return f"In {phases} {who} {what}{f' ({why})' if why else ''}."


def _examples(rows: list[Scenario]) -> list[Example]:
    """The first rows that differ, cut where a line is very long."""
    found: dict[Example, None] = {}
    for row in rows:
        attempt = row.attempt if len(row.attempt) <= _SHOWN else f"{row.attempt[: _SHOWN - 1]}…"
        example = Example(attempt, str(row.phase), str(row.identity), tuple(map(str, row.answers)))
        found[example] = None
    return list(found)[:_EXAMPLES]


_TASK = (
    "Write the policy that this executor should run under. Everything below has to work, in the phases "
    "named and for whom it is named; everything else stays denied, and while it is scored no answer or "
    "rubric may be reached by the agent. Where a request has to be watched, use `proxy` and say which "
    "methods and paths are meant. A private address takes an entry under `internal:`, programs one under "
    "`exec:`. The whole bank is then decided under your text, as if the gateway opened TLS: what leaks and "
    "what breaks is listed. The replay sees lines alone. It does not check whether the gateway puts "
    "a key in, what stands in a body, how big it is or how fast requests come, nor a place that no event "
    "asks for, such as one more entry of `rubric:`."
)


def _starting_text() -> str:
    """A policy that loads, permits nothing yet, and shows the shape."""
    return """\
# What this policy does not permit is denied.
version: 1

rules: []
# - allow: docs.some.test            # a tunnel: who, where, when and how many bytes are recorded
#   class: docs
# - proxy: api.some.test             # opened and watched: say what is meant
#   methods: [GET]
#   paths: [/v1/**]
#   phases: [setup, work]

rubric: []                           # closed to the agent while scoring, whatever a rule says

internal: []                         # the only private addresses that may be reached
# - {host: app.some.test, networks: [10.0.0.0/24], ports: [8080]}

unknown: deny

exec:
  allow: []                          # besides the command that was launched
"""
