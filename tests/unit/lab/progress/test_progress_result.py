"""A result that can be checked: a changed byte is refused, and so is a forged score, however well signed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.signer import SSlibKey

from doubles.lab_game import START, bank, begin_round, make_pack, perfect, play
from stockade.errors import IntegrityError
from stockade.evidence.envelope import sign
from stockade.evidence.keys import fingerprint, write_public_key
from stockade.lab.game.draw import draw_round
from stockade.lab.game.moment import Moment
from stockade.lab.game.rounds import Conflict, begin, give_answer, show, take_hint
from stockade.lab.game.score import Answer
from stockade.lab.progress.card import HEIGHT, WIDTH, render_card
from stockade.lab.progress.result import LONGEST_MS, RESULT_TYPE, sign_result, verify_result
from stockade.lab.progress.store import open_store
from stockade.vocabulary import Verdict

PACK = bank().pack
KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"\x08" * 32)


def make_result(key: Ed25519PrivateKey = KEY, learner: str = "Ada") -> bytes:
    """Tier 3, played right but for the third event, with a paid hint in the fifth."""
    state, now = begin_round(bank(), "result", 3), START
    for index in range(9):
        state = show(state, index, now)
        if index == 4:
            for _ in range(2):
                state, _ = take_hint(state, index)
        now = Moment(now.wall_ms + 25_000, now.mono_ms + 25_000, now.start)
        answer = perfect(bank().find(state.steps[index].scenario), bank())
        if index == 2:
            answer = Answer(Verdict.DENY if answer.decision else Verdict.ALLOW, answer.risk, answer.control)
        state, _ = give_answer(state, index, answer, now)
    return sign_result(bank(), state, learner, key)


RESULT = make_result()


def statement_of(data: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.b64decode(json.loads(data)["payload"]))
    return value


def forge(change: Callable[[dict[str, Any]], None], key: Ed25519PrivateKey = KEY) -> bytes:
    """The same result with something changed, and signed again by the same key."""
    statement = statement_of(RESULT)
    change(statement)
    return sign(json.dumps(statement, sort_keys=True, separators=(",", ":")).encode(), key)


def test_a_result_verifies_and_says_what_was_played() -> None:
    found = verify_result(RESULT, PACK)
    result = found.result
    assert (result.seed, result.tier, result.clock, result.learner) == ("result", 3, "on", "Ada")
    assert (result.started, result.ended) == ("2025-11-30T10:53:20Z", "2025-11-30T10:57:05Z")  # 225 seconds
    assert [event.ms for event in result.events] == [25_000] * 9
    assert [event.hints for event in result.events] == [0, 0, 0, 0, 2, 0, 0, 0, 0]
    assert result.events[0].points == 105  # 35 of 60 seconds are left: 5.83, rounded down
    assert result.events[4].points == 95  # a paid hint: no bonus, 5 less
    assert result.points == sum(event.points for event in result.events)
    assert (found.signed_by, found.is_pinned) == (fingerprint(KEY.public_key()), False)


def test_a_time_longer_than_any_is_not_told_and_the_result_verifies() -> None:
    """A clock that was set by decades between question and answer, say."""
    data = sign_result(
        bank(), play(bank(), begin_round(bank(), "long", 3), perfect, ms=LONGEST_MS + 1), "A", KEY
    )
    assert [event.ms for event in verify_result(data, PACK).result.events] == [None] * 9
    data = sign_result(bank(), play(bank(), begin_round(bank(), "long", 3), perfect, ms=LONGEST_MS), "A", KEY)
    assert [event.ms for event in verify_result(data, PACK).result.events] == [LONGEST_MS] * 9


def test_the_same_round_gives_the_same_bytes() -> None:
    assert make_result() == RESULT
    assert make_result(OTHER_KEY) != RESULT


def test_it_is_an_in_toto_statement_about_the_pack() -> None:
    statement = statement_of(RESULT)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == RESULT_TYPE == "urn:stockade:lab-result:v1"
    assert statement["subject"] == [{"name": PACK.name, "digest": {"sha256": PACK.digest}}]


def test_another_reader_of_dsse_takes_the_signature() -> None:
    """securesystemslib reads the envelope with code of its own."""
    envelope = TheirEnvelope.from_dict(json.loads(RESULT))
    (key_id,) = envelope.signatures
    pem = write_public_key(KEY.public_key()).decode()
    theirs = SSlibKey(key_id, "ed25519", "ed25519", {"public": KEY.public_key().public_bytes_raw().hex()})
    assert envelope.verify([theirs], 1)
    assert pem == statement_of(RESULT)["predicate"]["publicKey"]


@pytest.mark.parametrize("step", range(0, len(RESULT), 37))
def test_a_changed_byte_is_refused(step: int) -> None:
    spoiled = bytearray(RESULT)
    spoiled[step] ^= 1
    with pytest.raises(IntegrityError):
        verify_result(bytes(spoiled), PACK)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"no json", RESULT[:-1], RESULT + b"\n", b"[" * 5000, b"\xff\xfe"]
)
def test_what_is_no_result_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        verify_result(data, PACK)


def test_a_key_can_be_pinned() -> None:
    assert verify_result(RESULT, PACK, fingerprint(KEY.public_key())).is_pinned
    with pytest.raises(IntegrityError, match="wrong-key"):
        verify_result(RESULT, PACK, fingerprint(OTHER_KEY.public_key()))


def in_predicate(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda statement: statement["predicate"].__setitem__(name, value)


def in_event(index: int, **values: object) -> Callable[[dict[str, Any]], None]:
    return lambda statement: statement["predicate"]["events"][index].update(values)


def better_answer(statement: dict[str, Any]) -> None:
    """The right answer in the place of the wrong one, and nothing counted again."""
    event = statement["predicate"]["events"][2]
    key = bank().find(event["scenario"]).key
    event.update(decision=key.verdict.word, risk=str(key.risk), control=str(key.control))


def swap_events(statement: dict[str, Any]) -> None:
    events = statement["predicate"]["events"]
    events[0], events[1] = events[1], events[0]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (in_predicate("points", 900), "wrong-result", "points"),
        (in_predicate("percent", 100.0), "wrong-result", "percent"),
        (in_predicate("grade", "S"), "wrong-result", "grade"),
        (in_predicate("leaks", 7), "wrong-result", "leaks"),
        (in_predicate("blocks", 7), "wrong-result", "blocks"),
        (in_predicate("seed", "another"), "other-draw", "event 1"),
        (in_predicate("seed", "two words"), "bad-result", "seed"),
        (in_predicate("seed", " result"), "bad-result", "seed"),
        (in_predicate("tier", 1), "other-draw", "event 1"),
        (in_predicate("tier", 9), "bad-result", "tier"),
        (in_predicate("clock", "double"), "wrong-points", "event 1"),
        (in_predicate("clock", "never"), "bad-result", "clock"),
        (in_predicate("kind", "drill"), "bad-result", "kind"),
        (in_predicate("rules", 2), "other-rules", "rules 2"),
        (in_predicate("extra", 1), "bad-result", "extra"),
        (in_predicate("ended", "2025-11-30T10:00:00Z"), "bad-result", "before"),
        (in_predicate("started", "yesterday"), "bad-result", "time"),
        (in_predicate("started", "2025-11-30T10:53:20+00:00"), "bad-result", "time"),
        (in_event(3, points=110), "wrong-points", "event 4 "),
        (in_event(4, hints=0), "wrong-points", "event 5 "),
        (in_event(5, ms=0), "wrong-points", "event 6 "),
        (in_event(5, ms=-1), "bad-result", "event 6"),
        (in_event(2, ms=LONGEST_MS + 1), "bad-result", "event 3"),
        (in_event(2, ms=1 << 62), "bad-result", "event 3"),
        (in_predicate("learner", "x" * 41), "bad-result", "name"),
        (in_event(5, hints=4), "bad-result", "event 6"),
        (in_event(6, decision="maybe"), "bad-result", "event 7"),
        (in_event(6, scenario="E001"), "other-draw", "event 7"),
        (better_answer, "wrong-points", "event 3 "),
        (swap_events, "other-draw", "event 1"),
        (lambda s: s["predicate"]["events"].pop(), "bad-result", "9 events"),
        (lambda s: s.update(subject=[]), "other-bank", "other scenarios"),
        (lambda s: s["subject"][0]["digest"].update(sha256="0" * 64), "other-bank", "other scenarios"),
        (lambda s: s.update(predicateType="urn:other"), "bad-result", "urn:other"),
    ],
)  # fmt: skip
def test_a_forged_result_is_refused_though_it_is_signed(
    change: Callable[[dict[str, Any]], None], code: str, says: str
) -> None:
    with pytest.raises(IntegrityError, match=f"^{code}:") as refusal:
        verify_result(forge(change), PACK)
    assert says in refusal.value.message


def test_signed_again_without_a_change_it_verifies() -> None:
    """The control of the test above: it is the change that is refused, not the signing."""
    assert (
        verify_result(forge(lambda statement: None), PACK).result.points
        == verify_result(RESULT, PACK).result.points
    )


def test_a_result_that_two_readers_could_read_differently_is_refused() -> None:
    text = json.dumps(statement_of(RESULT), sort_keys=True, separators=(",", ":"))
    for other in (
        text[:-1] + ',"_type":"' + text.partition('"_type":"')[2].partition('"')[0] + '"}',
        text + " ",
    ):
        assert json.loads(other) == json.loads(text)
        with pytest.raises(IntegrityError, match="not written as we write it"):
            verify_result(sign(other.encode(), KEY), PACK)


def test_a_result_signed_by_a_key_that_it_does_not_name_is_refused() -> None:
    with pytest.raises(IntegrityError, match="wrong-key"):
        verify_result(forge(lambda statement: None, OTHER_KEY), PACK)


def test_a_result_of_other_scenarios_is_refused() -> None:
    with pytest.raises(IntegrityError, match="other-bank") as refusal:
        verify_result(RESULT, make_pack())
    assert make_pack().digest in str(refusal.value.hint)


def test_only_a_finished_round_has_a_result() -> None:
    open_round = begin_round(bank(), "open", 1)
    drill = begin("d", "drill", None, "s", PACK.digest, "on", ("E001",), START)
    for state in (open_round, play(bank(), drill, perfect)):
        with pytest.raises(Conflict, match="no-result"):
            sign_result(bank(), state, "x", KEY)
    assert (
        verify_result(sign_result(bank(), play(bank(), open_round, perfect), "x", KEY), PACK).result.grade
        == "S"
    )


def test_a_kept_round_gives_its_result_and_its_card() -> None:
    store = open_store(None, PACK)
    me = store.people.enter("Ada", START).id
    number = store.play.begin_round(me, 1, "kept", START).id
    for index, scenario in enumerate(draw_round(PACK, "kept", 1)):
        key = bank().find(scenario).key
        store.play.show(me, number, index, START)
        store.play.answer(me, number, index, (key.verdict.word, str(key.risk), str(key.control)), START)
    data = store.proof.result(me, number, KEY)
    found = verify_result(data, PACK)
    assert (found.result.learner, found.result.grade) == ("Ada", "S")
    assert store.proof.result(me, number, KEY) == data
    assert found.sha256 in store.proof.card(me, number, KEY)


# The share card


def read_card(learner: str = "Ada") -> tuple[ElementTree.Element, str]:
    text = render_card(verify_result(make_result(learner=learner), PACK))
    return ElementTree.fromstring(text), text


def test_a_card_carries_what_can_be_checked() -> None:
    found = verify_result(RESULT, PACK)
    root, _ = read_card()
    assert (root.get("width"), root.get("height")) == (str(WIDTH), str(HEIGHT)) == ("1200", "630")
    told = " ".join("".join(element.itertext()) for element in root)
    result = found.result
    for word in (
        found.sha256,
        PACK.digest,
        "result",
        "tier 3",
        f"{result.percent:.1f} %",
        result.grade,
        "Ada",
    ):
        assert word in told
    assert f"{result.leaks} leak" in told
    assert f"{result.blocks} wrong block" in told


def test_a_card_holds_no_script_and_fetches_nothing() -> None:
    root, text = read_card()
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names == {"svg", "title", "desc", "rect", "path", "text"}
    attributes = {name.rpartition("}")[2] for element in root.iter() for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or name in ("href", "style", "src")}
    assert re.findall(r"[a-z]+://[^\"' ]+", text) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in text
    assert "<!" not in text


def test_a_name_on_a_card_is_text_and_nothing_else() -> None:
    root, text = read_card('<script>alert("x")</script>&')
    assert "<script" not in text
    assert '<script>alert("x")</script>&' in {element.text for element in root.iter()}


def test_who_gave_no_name_has_none_on_the_card() -> None:
    root, _ = read_card("you")
    assert "you" not in {element.text for element in root.iter()}
    assert "played by" not in str(root[0].text)
