"""How a policy is refused: everything that is wrong with it, in one go.

A leaf parser raises `Rejected`; the reader catches it, notes it with its line, and goes
on, so that the author sees every fault of the file and not one per try.
"""

from __future__ import annotations

from stockade.errors import UserError
from stockade.policy.codes import CODES
from stockade.policy.model import Finding

SHOWN_PROBLEMS = 20  # a file of another kind has a fault in each line; nobody reads the 21st


class Rejected(Exception):  # noqa: N818 - control flow inside the loader, never seen outside
    """One thing that a leaf parser cannot take; the reader adds the place."""

    def __init__(self, code: str, message: str, better: str | None = None) -> None:
        super().__init__(message)
        assert code in CODES, code
        self.code = code
        self.message = message
        self.better = better


class PolicyError(UserError):
    """A policy that does not load.

    The first problem gives the code. The message has a line for each; a single problem's
    remedy is the hint, those of several stand below their lines.

    Attributes:
        problems: All of them, in the order of the file.
    """

    def __init__(self, problems: tuple[Finding, ...]) -> None:
        first = problems[0]
        super().__init__(first.code, _render(problems), first.better if len(problems) == 1 else None)
        self.problems = problems

    def __str__(self) -> str:
        return self.message


def _render(problems: tuple[Finding, ...]) -> str:
    lines = []
    for problem in problems[:SHOWN_PROBLEMS]:
        lines.append(problem.text)
        if problem.better and len(problems) > 1:
            lines.append(f"    {problem.better}")
    if len(problems) > SHOWN_PROBLEMS:
        lines.append(f"… and {len(problems) - SHOWN_PROBLEMS} more")
    return "\n".join(lines)


def refuse_at(origin: str, code: str, message: str, better: str | None = None) -> PolicyError:
    """A `PolicyError` of one problem."""
    assert code in CODES, code
    return PolicyError((Finding(code=code, severity="error", origin=origin, message=message, better=better),))


def nearest(word: str, choices: list[str]) -> str | None:
    """The choice that is spelled most like the word, however far away, or None without choices."""
    from difflib import get_close_matches  # only a faulty file needs it

    folded = {choice.replace("-", ""): choice for choice in choices}
    found = get_close_matches(word.lower().replace("_", "").replace("-", ""), list(folded), n=1, cutoff=0.0)
    return folded[found[0]] if found else None


def shown(text: str, limit: int = 60) -> str:
    """Text of the author for a message: printable, quoted, not longer than a line can bear."""
    clipped = text if len(text) <= limit else text[: limit - 1] + "…"
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in clipped)
    return f'"{printable}"'
