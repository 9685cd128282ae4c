"""The engine's sentence about an event, as a learner needs it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stockade.decision.request import Decision
from stockade.lab.game.book import Book
from stockade.lab.game.score import Answer
from stockade.lab.pack.scenario import Scenario
from stockade.policy.model import Rule
from stockade.vocabulary import PlaceClass, Verdict

_HOW_TO_OPEN = re.compile(r"; (?:to (?:allow|permit|reach) |an `allow` rule would ).*", re.DOTALL)
_MAY_BE_OPENED = frozenset({PlaceClass.UNKNOWN, PlaceClass.DOCS})


def tell_engine(book: Book, row: Scenario, answer: Answer) -> str:
    """Its reason, without how to open what should stay closed, and why a pass is watched or is not."""
    decision = book.decide(row)
    why = decision.why
    if not row.is_legitimate and row.key.place not in _MAY_BE_OPENED:
        why = _HOW_TO_OPEN.sub(".", why)
    door = tell_door(book, row, answer)
    return f"{why} {door}" if door and decision.verdict is row.key.verdict else why


def tell_door(book: Book, row: Scenario, answer: Answer) -> str:
    """Why proxy and not allow, or the reverse where that was answered; else empty."""
    if row.key.verdict is Verdict.PROXY:
        if row.words[0] == "dns":
            return "The card says proxy for this name, and a question has the verdict of its name."
        limits = _tell_limits(_find_rule(book, book.decide(row)))
        return (
            f"The card says proxy here: {limits}each request is recorded; allow would be a tunnel in which "
            "nothing is seen."
        )
    if row.key.verdict is Verdict.ALLOW and answer.decision is Verdict.PROXY:
        if row.words[0] == "exec":
            return "A program is allowed or denied; there is no request that could be watched."
        return (
            "The card says allow here: a tunnel, of which who, where, when and how many bytes are recorded. "
            "Proxy would read each request, and the card asks for no such thing at this place."
        )
    return ""


def _find_rule(book: Book, decision: Decision) -> Rule | None:
    return next((rule for rule in book.pack.policy.rules if rule.origin == decision.rule), None)


def _tell_limits(rule: Rule | None) -> str:
    if rule is None:
        return ""
    limited = [
        name
        for name, value in (
            ("methods", rule.methods),
            ("paths", rule.paths),
            ("queries", rule.max_query_bytes),
            ("sizes", rule.max_body_bytes),
            ("rates", rule.rate_per_s),
            ("bodies", rule.body),
        )
        if value
    ]
    told = [f"{join_words(limited)} are limited"] if limited else []
    told += ["the gateway puts the key in"] if rule.credential else []
    return f"{', '.join(told)} and " if told else ""


def join_words(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
