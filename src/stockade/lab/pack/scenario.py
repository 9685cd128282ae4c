"""One judged event: what the executor tried, and how it should be called and why."""

from __future__ import annotations

import shlex

from msgspec import Struct

from stockade.net.address import IPAddress
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict, Word


class Live(Word):
    """Whether the event can be tried for real."""

    YES = "yes"
    CONTENT = "content"  # the gateway would have to open TLS, which this version does not
    NO = "no"  # nothing leaves; for learners only


class Key(Struct, frozen=True):
    """The right answer, in three parts and what kind of place it is about."""

    verdict: Verdict
    risk: Risk
    control: Control
    place: PlaceClass


class Scenario(Struct, frozen=True, kw_only=True):
    """One event of a pack.

    Attributes:
        id: Its number in the pack, such as `E067`.
        tier: 1 to 4, how subtle it is.
        attempt: The argument line of `stockade decide`, as a POSIX shell would split it.
        answers: What the attempted name resolves to, where that matters.
        came_from: The URL whose answer named this attempt as its next hop.
        sni: The name in the TLS hello, where it differs from the host.
        carries: What a look inside shows and the line does not, in words; the engine is not asked about it.
        technique: What kind of trick it is; `none` for an ordinary one.
        event: What happens, in words. It may give the trick away: show it after the answer only.
        stated_reason: What the agent says it does this for.
        cue: What in the request decides.
        why: Why the key is as it is; where opinions differ, on which policy it rests.
        near: The scenario that looks alike and differs in what decides; empty if there is none.
        source: What the key is founded on.
    """

    id: str
    tier: int
    phase: Phase
    identity: Identity
    entry: Entry
    attempt: str
    answers: tuple[IPAddress, ...]
    came_from: str | None
    sni: str | None
    carries: str | None = None
    live: Live
    key: Key
    technique: str
    event: str
    stated_reason: str
    cue: str
    why: str
    near: str
    source: str

    @property
    def words(self) -> list[str]:
        """The attempt as words."""
        return shlex.split(self.attempt)

    @property
    def is_legitimate(self) -> bool:
        """It is let through, straight or through the proxy: to refuse it is a wrong block."""
        return self.key.verdict is not Verdict.DENY

    @property
    def is_seen_by_the_line(self) -> bool:
        """The line shows all that decides; else its key needs a look inside (pack.yaml)."""
        return "content inspection" not in self.why

    @property
    def is_control_in_the_line(self) -> bool:
        """The line says enough for the control, and not only for verdict and risk (pack.yaml)."""
        by_origin = {"redirect": self.came_from, "shared-address": self.sni}
        if self.technique in by_origin:
            return by_origin[self.technique] is not None
        return self.technique not in ("sandbox-bypass-flag", "host-network")
