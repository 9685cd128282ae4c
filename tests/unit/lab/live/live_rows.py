"""A scenario and an order for tests of live tries, as few words as can be."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from stockade.lab.live.result import Order, order_for
from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict

DENIED = Key(Verdict.DENY, Risk.EXFILTRATION, Control.DEFAULT_DENY, PlaceClass.UNKNOWN)
PERMITTED = Key(Verdict.ALLOW, Risk.BENIGN, Control.ALLOWLIST_EXACT, PlaceClass.DOCS)


def scenario(attempt: str, answers: tuple[str, ...] = (), **fields: Any) -> Scenario:
    said: dict[str, Any] = {
        "id": "T1",
        "tier": 1,
        "phase": Phase.WORK,
        "identity": Identity.AGENT,
        "entry": Entry.TRANSPARENT,
        "answers": tuple(map(ip_address, answers)),
        "came_from": None,
        "sni": None,
        "live": Live.YES,
        "key": DENIED,
        "technique": "none",
    }
    texts = dict.fromkeys(("event", "stated_reason", "cue", "why", "near", "source"), "")
    return Scenario(attempt=attempt, **{**said, **texts, **fields})


def order(attempt: str = "GET https://x.test/", **fields: Any) -> Order:
    return order_for(scenario(attempt, **fields))
