"""What is expected of each technique, written down before the first one is tried.

Its digest goes into the first record of every run, so a ledger shows that the expectation was there
before the attempt that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from stockade.prove.judge import describe_stopped
from stockade.prove.technique import Technique
from stockade.prove.trial import EXPECTATION_NAME

__all__ = ["EXPECTATION_NAME", "write_expectation"]


def write_expectation(techniques: Iterable[Technique], layers_off: Sequence[str], now: str) -> bytes:
    """The file: for each technique who should stop it, by which refusal, and what would show that it worked.

    Args:
        now: The time, RFC 3339 in UTC.
    """
    document = {
        "written": now,
        "layers_off": list(layers_off),
        "rule": "blocked: the control arrived, the attempt ran to its end, nothing arrived, one of these "
        "refusals is on record, and a permitted request worked before and after",
        "techniques": [_expect(technique) for technique in techniques],
    }
    return msgspec.json.format(msgspec.json.encode(document)) + b"\n"


def _expect(technique: Technique) -> dict[str, object]:
    return {
        "id": technique.id,
        "layer": technique.layer,
        "refusal": [describe_stopped(stopped) for stopped in technique.stopped],
        "worked_if_seen": [
            {name: value for name, value in msgspec.structs.asdict(witness).items() if value is not None}
            for witness in technique.arrives
        ],
        "permits_besides": list(technique.reachable),
        "not_supported": technique.not_supported,
    }
