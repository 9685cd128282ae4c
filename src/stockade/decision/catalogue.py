"""What a place is: a data file of ours, behind the entries of the policy and of the machine.

The catalogue opens nothing and closes nothing. It gives a denial its name, so that the
record says "a paste site" and not only "not listed". `catalogue.json` names public
services and the page of theirs that says what the host is for; package registries are
not in it, since they are recognized from the machine's own configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from stockade.decision.name_index import NameIndex
from stockade.policy.model import CatalogueEntry, HostPattern
from stockade.vocabulary import Control, PlaceClass, Risk

DATA_FILE = Path(__file__).with_name("catalogue.json")

# What reaching such a place means, where its entry does not say it. The
# missing classes have no risk of their own: the operation decides.
CLASS_RISK: dict[PlaceClass, Risk] = {
    PlaceClass.PASTE: Risk.EXFILTRATION,
    PlaceClass.MESSAGING: Risk.EXFILTRATION,
    PlaceClass.TUNNEL: Risk.EXFILTRATION,
    PlaceClass.RESOLVER: Risk.EXFILTRATION,
    PlaceClass.OBJECT_STORE: Risk.EXFILTRATION,
    PlaceClass.MODEL_PROVIDER: Risk.EXFILTRATION,
    PlaceClass.REGISTRY: Risk.SUPPLY_CHAIN,
    PlaceClass.MIRROR: Risk.SUPPLY_CHAIN,
    PlaceClass.DATASET_HUB: Risk.SUPPLY_CHAIN,
    PlaceClass.METADATA: Risk.METADATA_CREDENTIALS,
    PlaceClass.INTERNAL: Risk.SSRF,
}

CLASS_CONTROL: dict[PlaceClass, Control] = {
    PlaceClass.RESOLVER: Control.OWN_RESOLVER_ONLY,
    PlaceClass.REGISTRY: Control.VETTED_MIRROR_PINNED,
    PlaceClass.MIRROR: Control.VETTED_MIRROR_PINNED,
    PlaceClass.METADATA: Control.DENY_LINK_LOCAL_METADATA,
    PlaceClass.TELEMETRY: Control.TELEMETRY_OFF,
}


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the data file: hosts of one owner, and where the owner says what they are."""

    hosts: tuple[str, ...]
    place: PlaceClass = msgspec.field(name="class")
    source: str
    risk: Risk | None = None
    control: Control | None = None


class Catalogue:
    """Entries by name, ours last; the first list that knows a name answers, with its most specific entry."""

    def __init__(self, *lists: Iterable[CatalogueEntry]) -> None:
        self._indexes = [*map(_index, lists), _load_builtin_index()]

    def find(self, name: str) -> CatalogueEntry | None:
        for index in self._indexes:
            found = index.find(name)
            if found:
                return found[0]
        return None


def _index(entries: Iterable[CatalogueEntry]) -> NameIndex[CatalogueEntry]:
    index: NameIndex[CatalogueEntry] = NameIndex()
    for entry in entries:
        for host in entry.hosts:
            index.add(host, entry)
    return index


@lru_cache(maxsize=1)
def load_builtin_entries() -> tuple[CatalogueEntry, ...]:
    """The entries of the data file that ships with the package."""
    lines = msgspec.json.decode(DATA_FILE.read_bytes(), type=tuple[_Line, ...])
    return tuple(
        CatalogueEntry(
            place=line.place,
            hosts=tuple(_pattern(host) for host in line.hosts),
            risk=line.risk,
            control=line.control,
            origin="builtin:catalogue",
        )
        for line in lines
    )


@lru_cache(maxsize=1)
def _load_builtin_index() -> NameIndex[CatalogueEntry]:
    return _index(load_builtin_entries())


def _pattern(text: str) -> HostPattern:
    return HostPattern(text.removeprefix("*."), text.startswith("*."))
