"""A scenario pack: events, and the one policy that they are judged under."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec import Struct

from stockade.lab.pack.scenario import Scenario
from stockade.policy.model import Policy


class Pack(Struct, frozen=True, kw_only=True):
    """What was loaded.

    Attributes:
        file: The real path of its `pack.yaml`.
        policy_text: The policy card as its author wrote it, comments included.
        digest: SHA-256 over the files of the pack, in hex; a result names what it was played with.
    """

    name: str
    file: Path
    policy: Policy
    policy_text: str
    scenarios: tuple[Scenario, ...]
    digest: str

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.file.parent

    def find(self, number: str) -> Scenario | None:
        """The scenario of this number."""
        return next((one for one in self.scenarios if one.id == number), None)


@cache
def shipped_bank() -> Pack:
    """The event bank that ships with Stockade."""
    from stockade.lab.pack.load import load_pack

    return load_pack(Path(__file__).parents[1] / "bank" / "pack.yaml")
