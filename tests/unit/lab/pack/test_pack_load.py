"""A pack loads, or every fault of its files is named with its line."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest
from pack_texts import PACK, POLICY, write_pack

from stockade.lab.pack.load import FILE_LIMIT_BYTES, load_pack
from stockade.lab.pack.pack import shipped_bank
from stockade.lab.pack.read import CODES, PackError
from stockade.lab.pack.scenario import Live
from stockade.vocabulary import Entry, Identity, Phase, PlaceClass, Risk, Verdict

HEADER = "id,attempt,answers,verdict,risk,control,class,event,cue,why,near\n"
FIRST = "A1,GET https://docs.test/,,allow,benign,allowlist-exact,docs,e,c,w,\n"


def problems_of(path: Path) -> list[tuple[str, str]]:
    """Place and code of each problem."""
    with pytest.raises(PackError) as refused:
        load_pack(path)
    assert refused.value.exit_code == 2
    return [(problem.origin, problem.code) for problem in refused.value.problems]


def changed(old: str, new: str) -> str:
    assert PACK.count(old) == 1, old
    return PACK.replace(old, new)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_what_a_scenario_leaves_out_has_its_default(tmp_path: Path) -> None:
    pack = load_pack(write_pack(tmp_path))
    first, second = pack.scenarios
    assert (first.id, first.tier, first.phase, first.identity) == ("A1", 1, Phase.WORK, Identity.AGENT)
    assert (first.entry, first.live, first.technique) == (Entry.TRANSPARENT, Live.YES, "none")
    assert (first.key.verdict, first.key.risk, first.key.place) == (
        Verdict.ALLOW,
        Risk.BENIGN,
        PlaceClass.DOCS,
    )
    assert (second.near, second.answers, second.came_from) == ("", (), None)
    assert (pack.file, pack.folder, pack.policy_text) == (tmp_path / "pack.yaml", tmp_path, POLICY)


def test_the_door_of_an_attempt_is_that_of_its_form(tmp_path: Path) -> None:
    lines = {"dns docs.test": Entry.DNS, "udp docs.test 53": Entry.UDP, "exec git log": Entry.EXEC}
    for line, entry in lines.items():
        pack = load_pack(write_pack(tmp_path, changed("GET https://docs.test/guide", line)))
        assert pack.scenarios[0].entry is entry


def test_scenarios_may_lie_in_a_csv_file_and_say_their_origin_in_the_pack(tmp_path: Path) -> None:
    pack = "version: 1\nname: n\npolicy: policy.yaml\nscenarios: rows.csv\n"
    pack += 'origins:\n  A1: {from: "http://shop.test/"}\n'
    row = '"A1",GET https://docs.test/,10.0.0.1;::1,allow,benign,allowlist-exact,docs,"e, and\nmore",c,w,\n'
    scenario = load_pack(write_pack(tmp_path, pack, rows_csv=HEADER + row)).scenarios[0]
    assert scenario.answers == (ip_address("10.0.0.1"), ip_address("::1"))
    assert scenario.came_from == "http://shop.test/"
    assert scenario.event == "e, and more"


def test_the_digest_is_of_every_file_of_the_pack(tmp_path: Path) -> None:
    digests = {load_pack(write_pack(tmp_path)).digest}
    digests.add(load_pack(write_pack(tmp_path, PACK + "# more\n")).digest)
    digests.add(load_pack(write_pack(tmp_path, policy=POLICY + "# more\n")).digest)
    included = "version: 1\ninclude: [more.yaml]\n" + POLICY.partition("\n")[2]
    for text in ("version: 1\n", "version: 1\nunknown: deny\n"):
        digests.add(load_pack(write_pack(tmp_path, policy=included, more_yaml=text)).digest)
    assert len(digests) == 5
    assert load_pack(write_pack(tmp_path)).digest in digests


@pytest.mark.parametrize(
    ("old", "new", "part", "code"),
    [
        ("version: 1", "version: 2", "version: 2", "pack-value"),
        ("name: Two events\n", "nam: Two events\n", "nam:", "pack-key-unknown"),
        ("    cue: the exact listed host\n", "    que: the exact listed host\n", "que:", "pack-key-unknown"),
        ("policy: policy.yaml", "policy: ../policy.yaml", "policy:", "pack-file"),
        ("policy: policy.yaml", "policy: /etc/passwd", "policy:", "pack-file"),
        ("policy: policy.yaml", "policy: none.yaml", "policy:", "pack-file"),
        ("  - id: A2", "  - id: A1", "  - id: A1\n    attempt: GET https://docs.test.m", "pack-id-twice"),
        ("id: A2", "id: A 2", "id: A 2", "pack-value"),
        ("verdict: deny", "verdict: denied", "verdict: denied", "pack-value"),
        ("verdict: deny", "verdict: [deny]", "verdict: [deny]", "pack-value"),
        ("risk: exfiltration", "risk: exfil", "risk: exfil", "pack-value"),
        ("class: unknown", "class: nowhere", "class: nowhere", "pack-value"),
        ("near: A2", "near: A3", "  - id: A1", "pack-near"),
        ("near: A2", "near: A1", "  - id: A1", "pack-near"),
        ("near: A2", "tier: 5", "tier: 5", "pack-value"),
        ("near: A2", "live: perhaps", "live: perhaps", "pack-value"),
        ("near: A2", "phase: later", "phase: later", "pack-value"),
        ("near: A2", "entry: dns", "attempt: GET https://docs.test/guide", "pack-attempt"),
        ("near: A2", "answers: [10.0.0.300]", "answers:", "pack-value"),
        ("near: A2", "from: shop.test", "from: shop.test", "pack-value"),
        ("near: A2", "sni: 10.0.0.1", "sni: 10", "pack-value"),
        ("near: A2", "why: twice", "why: twice", "pack-key-twice"),
        ("GET https://docs.test/guide", "GET docs.test/guide", "attempt: GET docs", "pack-attempt"),
        ("GET https://docs.test/guide", '"GET \'https://docs.test"', "attempt: ", "pack-attempt"),
        ("GET https://docs.test/guide", "fetch it now please", "attempt: fetch", "pack-attempt"),
        ("event: The agent reads the guide\n", 'event: "a\\u0007b"\n', "event:", "pack-value"),
        ("event: The agent reads the guide\n", f"event: {'x' * 2001}\n", "event:", "pack-value"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_line(tmp_path: Path, old: str, new: str, part: str, code: str) -> None:
    text = changed(old, new)
    place = f"pack.yaml:{line_of(text, part)}"
    assert (place, code) in problems_of(write_pack(tmp_path, text))


def test_a_request_alone_can_come_from_an_answer(tmp_path: Path) -> None:
    text = changed("GET https://docs.test/guide", "tcp docs.test 443")
    assert load_pack(write_pack(tmp_path, text))
    text = text.replace("near: A2", 'from: "http://shop.test/"')
    assert [code for _, code in problems_of(write_pack(tmp_path, text))] == ["pack-origin"]


def test_every_fault_is_told_and_not_only_the_first(tmp_path: Path) -> None:
    text = changed("verdict: allow", "verdict: alow").replace("risk: exfiltration", "risk: exfil")
    assert [code for _, code in problems_of(write_pack(tmp_path, text + "extra: 1\n"))] == [
        "pack-key-unknown",
        "pack-value",
        "pack-value",
    ]


def test_the_nearest_word_is_named(tmp_path: Path) -> None:
    text = changed("risk: exfiltration", "risk: ekfiltration")
    with pytest.raises(PackError, match='there is no "ekfiltration"') as refused:
        load_pack(write_pack(tmp_path, text))
    assert (refused.value.hint or "").startswith("the nearest is exfiltration; there are benign,")


def test_faults_of_the_policy_are_told_with_the_pack_s(tmp_path: Path) -> None:
    path = write_pack(tmp_path, changed("verdict: deny", "verdict: no"), policy="version: 1\nrulez: []\n")
    assert {place for place, _ in problems_of(path)} == {"policy.yaml:2", "pack.yaml:17"}


@pytest.mark.parametrize(
    ("rows", "place", "code"),
    [
        (HEADER, "rows.csv:1", "pack-csv"),
        ("", "rows.csv:1", "pack-csv"),
        (HEADER + FIRST + "A2,too,few\n", "rows.csv:3", "pack-csv"),
        (HEADER + FIRST + FIRST, "rows.csv:3", "pack-id-twice"),
        (HEADER.replace("cue", "kue") + FIRST, "rows.csv:1", "pack-key-unknown"),
        (HEADER.replace("cue", "why") + FIRST, "rows.csv:1", "pack-key-twice"),
        (HEADER + FIRST.replace("allow,", "aloud,"), "rows.csv:2", "pack-value"),
        (HEADER + '"A1"x,' + FIRST, "rows.csv:2", "pack-csv"),
    ],
)
def test_a_fault_of_a_csv_file_is_named_with_its_line(
    tmp_path: Path, rows: str, place: str, code: str
) -> None:
    pack = "version: 1\nname: n\npolicy: policy.yaml\nscenarios: rows.csv\n"
    assert (place, code) in problems_of(write_pack(tmp_path, pack, rows_csv=rows))


def test_an_origin_belongs_to_a_scenario(tmp_path: Path) -> None:
    origin = 'origins:\n  A9: {from: "http://shop.test/"}\n'
    assert problems_of(write_pack(tmp_path, PACK + origin)) == [("pack.yaml:25", "pack-origin")]
    assert [code for _, code in problems_of(write_pack(tmp_path, PACK + "origins: {A1: {}}\n"))] == [
        "pack-yaml"
    ]


@pytest.mark.parametrize(
    "text",
    ["", "- 1\n", "just words\n", "a: &x 1\nb: *x\n", "version: 1\nname: n\npolicy: p\nscenarios: []\n"],
)
def test_what_is_no_pack_is_refused_in_words(tmp_path: Path, text: str) -> None:
    assert problems_of(write_pack(tmp_path, text))


def test_a_file_that_is_none_or_too_large_is_refused(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "missing.yaml") == [("missing.yaml", "pack-file")]
    assert problems_of(tmp_path) == [(tmp_path.name, "pack-file")]
    large = write_pack(tmp_path, PACK + "#" * FILE_LIMIT_BYTES)
    assert problems_of(large) == [("pack.yaml", "pack-file")]
    large.write_bytes(b"version: 1\nname: \xff\n")
    assert problems_of(large) == [("pack.yaml", "pack-file")]


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    path = write_pack(tmp_path / "pack")
    (tmp_path / "elsewhere.yaml").write_text(POLICY)
    (tmp_path / "pack" / "policy.yaml").unlink()
    (tmp_path / "pack" / "policy.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert problems_of(path) == [("pack.yaml:3", "pack-file")]


def test_every_code_has_a_sentence_and_the_shipped_bank_loads() -> None:
    assert all(sentence and code.startswith("pack-") for code, sentence in CODES.items())
    assert len(shipped_bank().scenarios) == 171


@pytest.mark.parametrize("name", [r"\e[2J.yaml", r"a\0b", r"\u202ecard.yaml", r"a\nb"])
def test_a_file_name_that_cannot_be_shown_is_refused_and_does_not_reach_the_terminal(
    tmp_path: Path, name: str
) -> None:
    path = write_pack(tmp_path, changed("policy: policy.yaml", f'policy: "{name}"'))
    with pytest.raises(PackError) as refused:
        load_pack(path)
    (problem,) = refused.value.problems
    assert (problem.origin, problem.code) == ("pack.yaml:3", "pack-file")
    assert problem.message.isprintable()


def test_links_in_a_circle_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "turn.yaml").symlink_to("turn.yaml")
    path = write_pack(tmp_path, changed("policy: policy.yaml", "policy: turn.yaml"))
    assert problems_of(path) == [("pack.yaml:3", "pack-file")]
