"""Signed results and share cards of kept rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.lab.progress.card import render_card
from stockade.lab.progress.people import People
from stockade.lab.progress.play import Play
from stockade.lab.progress.result import sign_result, verify_result

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Proof:
    """What a learner can show to others; the key is handed in, and is the user's own (`evidence.keys`)."""

    def __init__(self, play: Play, people: People) -> None:
        self._play = play
        self._people = people

    def result(self, learner: str, number: str, key: Ed25519PrivateKey) -> bytes:
        """The signed result of a finished round.

        Raises:
            Conflict: The round is not finished, or it is a drill.
        """
        state = self._play.state(learner, number)
        return sign_result(self._play.book, state, self._people.find(learner).name, key)

    def card(self, learner: str, number: str, key: Ed25519PrivateKey) -> str:
        """The share card of that result, as SVG."""
        return render_card(verify_result(self.result(learner, number, key), self._play.book.pack))
