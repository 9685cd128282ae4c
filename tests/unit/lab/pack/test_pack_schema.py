"""The schema and the loader know the same keys and the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from pack_texts import PACK, write_pack

from stockade.lab.pack.keys import ORIGIN_KEYS, PACK_KEYS, SCENARIO_KEYS
from stockade.lab.pack.load import load_pack
from stockade.lab.pack.read import READERS, PackError
from stockade.lab.pack.scenario import Live
from stockade.lab.pack.schema import build_schema
from stockade.vocabulary import Control, Entry, Identity, Phase, PlaceClass, Risk, Verdict

SCHEMA = build_schema()
WORDS = {
    "phase": list(map(str, Phase)),
    "identity": list(map(str, Identity)),
    "entry": list(map(str, Entry)),
    "verdict": [verdict.word for verdict in Verdict],
    "risk": list(map(str, Risk)),
    "control": list(map(str, Control)),
    "class": list(map(str, PlaceClass)),
    "live": list(map(str, Live)),
}


def is_valid(text: str) -> bool:
    try:
        jsonschema.validate(yaml.safe_load(text), SCHEMA)
    except jsonschema.ValidationError:
        return False
    return True


def loads(folder: Path, text: str) -> bool:
    try:
        load_pack(write_pack(folder, text))
    except PackError:
        return False
    return True


def test_it_is_a_schema_and_the_example_fits_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert is_valid(PACK)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_it_has_every_key_of_the_loader_and_no_other() -> None:
    scenario = SCHEMA["$defs"]["scenario"]
    assert set(SCHEMA["properties"]) == {key.name for key in PACK_KEYS}
    assert set(scenario["properties"]) == {key.name for key in (*SCENARIO_KEYS, *ORIGIN_KEYS)}
    assert set(scenario["required"]) == {key.name for key in SCENARIO_KEYS if key.is_required}
    assert {key.kind for key in (*SCENARIO_KEYS, *ORIGIN_KEYS)} == set(READERS)


@pytest.mark.parametrize("key", WORDS)
def test_every_word_of_the_vocabulary_fits_both_and_no_other_does(key: str, tmp_path: Path) -> None:
    described = SCHEMA["$defs"]["scenario"]["properties"][key]
    listed: list[Any] = described.get("enum") or described["anyOf"][0]["enum"]
    assert listed == WORDS[key]
    for word in WORDS[key]:
        assert READERS[key](word) is not None
    assert not loads(tmp_path, PACK.replace("near: A2", f"{key}: nonsense"))
    assert not is_valid(PACK.replace("near: A2", f"{key}: nonsense"))


@pytest.mark.parametrize(
    ("old", "new", "is_good"),
    [
        ("near: A2", "tier: 4", True),
        ("near: A2", "tier: 5", False),
        ("near: A2", "tier: 0", False),
        ("near: A2", "answers: [10.0.0.1, '::1']", True),
        ("near: A2", "answers: 10.0.0.1", True),
        ("near: A2", "answers: [shop.test]", False),
        ("near: A2", "live: yes", True),
        ("near: A2", "live: no", True),
        ("near: A2", "live: content", True),
        ("near: A2", "technique: prefix-lookalike", True),
        ("near: A2", "technique: A B", False),
        ("near: A2", "from: 'http://shop.test/'", True),
        ("near: A2", "from: shop.test", False),
        ("near: A2", "sni: other.test", True),
        ("near: A2", "near: 'A 2'", False),
        ("version: 1", "version: 2", False),
        ("name: Two events", "names: Two events", False),
        ("    why: The card lists it.\n", "", False),
    ],
)
def test_schema_and_loader_say_the_same(tmp_path: Path, old: str, new: str, is_good: bool) -> None:
    text = PACK.replace(old, new, 1)
    assert text != PACK
    assert (is_valid(text), loads(tmp_path, text)) == (is_good, is_good)
