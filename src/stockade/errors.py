"""What can go wrong, sorted by who can act on it.

A denial is a `Decision`, not an exception. Exceptions are for the rest, in six
families; the family decides the exit code and what happens to a running worker.
This module imports nothing of ours, so every layer can raise from it.
"""

from __future__ import annotations


class StockadeError(Exception):
    """Base of all our errors: a stable code, one line, and often a remedy.

    Args:
        code: Stable kebab word that scripts may match, for example ``bwrap-missing``.
        message: One line for a person; it names the thing and the place.
        hint: What the reader can do about it, or ``None``.
    """

    exit_code = 1

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class UserError(StockadeError):
    """The person running it gave something we cannot use: stop before anything starts."""

    exit_code = 2


class HostError(StockadeError):
    """This host cannot do what was asked: stop before anything starts, name the feature."""

    exit_code = 3


class ContainmentError(StockadeError):
    """Containment cannot be promised (any more): kill the run, record it if possible."""

    exit_code = 4


class IntegrityError(StockadeError):
    """A ledger or evidence record does not verify: report the first bad index."""

    exit_code = 5


class InternalError(StockadeError):
    """A fault of ours: kill the run and ask for a report."""

    exit_code = 1


class PeerError(StockadeError):
    """The untrusted side broke the rules: close that flow, record it, go on."""


class ProtocolViolation(PeerError):  # noqa: N818  # the peer's fault, not an error of ours
    """The only exception that parsers of untrusted bytes raise; `code` is a reason word."""
