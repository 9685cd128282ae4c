"""The keys of a pack file and of a scenario: one table for the loader, the schema and the guide.

A scenario stands in the pack file with these keys, or is a row of a CSV file whose columns they are.
"""

from __future__ import annotations

from msgspec import Struct


class Key(Struct, frozen=True, kw_only=True):
    """One key.

    Attributes:
        kind: How its value is read (`read.READERS`) and described (`schema.FRAGMENTS`).
        default: What holds where it is missing or empty, as written; None for a key that has to be there.
    """

    name: str
    kind: str
    doc: str
    default: str | None = None

    @property
    def is_required(self) -> bool:
        return self.default is None


PACK_KEYS = (
    Key(name="version", kind="version", doc="1"),
    Key(name="name", kind="text", doc="What the pack is called."),
    Key(name="policy", kind="file", doc="The policy card: a file in the pack's folder or below it."),
    Key(
        name="scenarios",
        kind="scenarios",
        doc="A list of scenarios, or the name of a CSV file in the pack's folder or below it.",
    ),
    Key(
        name="origins",
        kind="origins",
        default="",
        doc="By the scenario's id: how its attempt came about (`from`, `sni`) and what it `carries`, "
        "for rows of a CSV file.",
    ),
)

# How an attempt came about, where its line cannot say it.
ORIGIN_KEYS = (
    Key(name="from", kind="url", default="", doc="The URL whose answer named this attempt as its next hop."),
    Key(name="sni", kind="host", default="", doc="The name in the TLS hello, where it is not the host's."),
    Key(
        name="carries",
        kind="text",
        default="",
        doc="What a look inside shows and the line does not: a key, a header, the body, how often it comes.",
    ),
)

SCENARIO_KEYS = (
    Key(name="id", kind="id", doc="Its number, such as `E067`; no two are the same."),
    Key(name="tier", kind="tier", default="1", doc="1 to 4: how subtle it is."),
    Key(name="phase", kind="phase", default="work", doc="The phase of the run."),
    Key(name="identity", kind="identity", default="agent", doc="Who tries it."),
    Key(
        name="entry",
        kind="entry",
        default="",
        doc="The door by which it comes; without it, the one that the attempt's form has.",
    ),
    Key(name="attempt", kind="attempt", doc="The argument line of `stockade decide`, as a shell splits it."),
    Key(
        name="answers",
        kind="addresses",
        default="",
        doc="What the name resolves to, where that decides. In CSV with `;` between.",
    ),
    Key(
        name="live",
        kind="live",
        default="yes",
        doc="`yes`: tried for real; `content`: waits for a look inside TLS; `no`: for learners only.",
    ),
    Key(name="verdict", kind="verdict", doc="The key: `allow`, `proxy` or `deny`."),
    Key(name="risk", kind="risk", doc="The key's risk."),
    Key(name="control", kind="control", doc="The key's control: the one that fits best."),
    Key(name="class", kind="class", doc="What kind of place it goes to."),
    Key(name="technique", kind="word", default="none", doc="What kind of trick it is."),
    Key(name="event", kind="text", doc="What happens, in words; shown after the answer."),
    Key(name="stated_reason", kind="text", default="", doc="What the agent says it does this for."),
    Key(name="cue", kind="text", doc="What in the request decides."),
    Key(
        name="why",
        kind="text",
        doc="Why the key is as it is. With the words `content inspection` the line does not show it all.",
    ),
    Key(
        name="near",
        kind="near",
        default="",
        doc="The id of the scenario that looks alike and is called otherwise.",
    ),
    Key(name="source", kind="text", default="", doc="What the key is founded on."),
)
