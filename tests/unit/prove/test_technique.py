"""Reading attack files: never run, and refused when they could not be judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stockade.errors import InternalError, UserError
from stockade.prove.technique import Group, Technique, choose, load_catalogue, read_technique

ATTACK: dict[str, Any] = {
    "title": "An example",
    "group": "metadata",
    "layer": "gateway",
    "risk": "ssrf",
    "references": ["CWE-918"],
    "arrives": [{"what": "tcp", "address": "169.254.169.254"}],
    "stopped": [{"reason": ["metadata-address"]}],
}
TEXT = "One line.\n\nHow it works,\nin two lines.\n\nNot covered: this\nand that.\n"


def write(folder: Path, fields: dict[str, Any], text: str = TEXT, rest: str = "") -> Path:
    path = folder / "an_example.py"
    path.write_text(f'"""{text}"""\n\nATTACK = {fields!r}\n{rest}')
    return path


def test_a_file_says_what_it_is_by_its_name_its_text_and_one_literal(tmp_path: Path) -> None:
    one = read_technique(write(tmp_path, ATTACK))
    assert (one.id, one.title, one.group) == ("an-example", "An example", Group.METADATA)
    assert one.about == "One line.\n\nHow it works,\nin two lines."
    assert one.not_covered == "this and that."
    assert one.arrives[0].address == "169.254.169.254"
    assert not one.is_browser


def test_reading_a_file_does_not_run_it(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    read_technique(write(tmp_path, ATTACK, rest=f"\nopen({str(trace)!r}, 'w').close()\n"))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"group": "nonsense"}, "nonsense"),
        ({"layer": "hope"}, "hope"),
        ({"risk": "big"}, "big"),
        ({"unknown": 1}, "unknown"),
        ({"arrives": [{"what": "smoke"}]}, "smoke"),
        ({"arrives": [{"what": "tcp", "adress": "x"}]}, "adress"),
        ({"arrives": []}, "arrived"),
        ({"stopped": []}, "no refusal"),
        ({"stopped": [{}]}, "without a reason"),
        ({"stopped": [{"entry": ["transparent"]}]}, "without a reason"),
        ({"stopped": [{"reason": ["not-listed"], "silent": ["EACCES"]}]}, "not both"),
        ({"references": []}, "no reference"),
        ({"title": 5}, "title"),
    ],
)
def test_a_file_that_could_not_be_judged_is_refused(
    tmp_path: Path, change: dict[str, Any], word: str
) -> None:
    with pytest.raises(InternalError, match=word):
        read_technique(write(tmp_path, ATTACK | change))


@pytest.mark.parametrize(
    "content",
    [
        "ATTACK = {}\n",
        '"""Text."""\n',
        '"""Text."""\nATTACK = {}\nATTACK = {}\n',
        '"""Text."""\nATTACK = dict(title="x")\n',
        '"""Text."""\nATTACK = [1]\n',
        '"""Text."""\nATTACK = {\n',
        '"""Text.\0"""\n',
    ],
)
def test_a_file_without_a_text_and_one_literal_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(content)
    with pytest.raises(InternalError, match=r"bad\.py"):
        read_technique(path)


def test_what_is_not_supported_needs_no_witness_yet(tmp_path: Path) -> None:
    fields = ATTACK | {"arrives": [], "stopped": [], "not_supported": "needs TLS to be opened"}
    assert read_technique(write(tmp_path, fields)).not_supported == "needs TLS to be opened"


def test_the_tools_of_the_attacks_are_no_techniques(tmp_path: Path) -> None:
    write(tmp_path, ATTACK)
    for name in ("__init__.py", "kit.py", "probe.py", "runner.py"):
        (tmp_path / name).write_text("x = 1\n")
    assert [one.id for one in load_catalogue(tmp_path)] == ["an-example"]


# --- choosing ----------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> list[Technique]:
    found = []
    for name, group in (("dns-label", "dns"), ("metadata-hex", "metadata"), ("metadata-octal", "metadata")):
        path = write(tmp_path, ATTACK | {"group": group})
        found.append(read_technique(path.rename(tmp_path / f"{name.replace('-', '_')}.py")))
    return found


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], ["dns-label", "metadata-hex", "metadata-octal"]),
        (["metadata-hex"], ["metadata-hex"]),
        (["metadata"], ["metadata-hex", "metadata-octal"]),
        (["metadata", "dns-label"], ["dns-label", "metadata-hex", "metadata-octal"]),
    ],
)
def test_attacks_are_chosen_by_id_and_by_group(
    three: list[Technique], words: list[str], chosen: list[str]
) -> None:
    assert [one.id for one in choose(three, words)] == chosen


def test_a_near_miss_is_answered_with_what_was_meant(three: list[Technique]) -> None:
    with pytest.raises(UserError, match="metadata-octl") as caught:
        choose(three, ["dns", "metadata-octl"])
    assert "did you mean metadata-octal?" in str(caught.value.hint)
    with pytest.raises(UserError) as caught:
        choose(three, ["zzz"])
    assert caught.value.hint == "stockade prove --list"
