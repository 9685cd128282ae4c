"""Pack files to a `Pack`."""

from __future__ import annotations

import csv
import hashlib
import io
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

from stockade.lab.pack.pack import Pack
from stockade.lab.pack.scenario import Key, Live, Scenario
from stockade.policy.load import load_policy
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict


def load_pack(path: Path) -> Pack:
    """Load a pack and what it names."""
    text = path.read_bytes()
    tree = yaml.safe_load(text)
    policy_path = path.parent / tree["policy"]
    digest = hashlib.sha256(text + policy_path.read_bytes())
    rows = tree["scenarios"]
    if isinstance(rows, str):
        listed = (path.parent / rows).read_bytes()
        digest.update(listed)
        rows = list(csv.DictReader(io.StringIO(listed.decode())))
    origins = tree.get("origins") or {}
    return Pack(
        name=tree["name"],
        file=path.resolve(),
        policy=load_policy(policy_path),
        policy_text=policy_path.read_text(),
        scenarios=tuple(_scenario(row, origins.get(row["id"], {})) for row in rows),
        digest=digest.hexdigest(),
    )


def _scenario(row: dict[str, Any], origin: dict[str, str]) -> Scenario:
    return Scenario(
        id=row["id"],
        tier=int(row["tier"]),
        phase=Phase(row["phase"]),
        identity=Identity(row["identity"]),
        entry=Entry(row["entry"]),
        attempt=row["attempt"],
        answers=tuple(ip_address(answer) for answer in row["answers"].split(";") if answer),
        came_from=origin.get("from"),
        sni=origin.get("sni"),
        live=Live(row["live"]),
        key=Key(
            Verdict[row["verdict"].upper()],
            Risk(row["risk"]),
            Control(row["control"]),
            PlaceClass(row["class"]),
        ),
        technique=row["technique"],
        event=row["event"],
        stated_reason=row["stated_reason"],
        cue=row["cue"],
        why=row["why"],
        near=row["near"],
        source=row["source"],
    )
