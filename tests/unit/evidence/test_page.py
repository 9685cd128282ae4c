"""The page for people: everything is on it, nothing is loaded, and foreign text does nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from doubles.made_up_proof import HOSTILE, make_circumstances, make_png, make_proof, make_try, seal_proof
from stockade.evidence.page import mark_code, show
from stockade.evidence.pictures import PICTURE_LIMIT_BYTES, Album, describe_transcript

VOID = {"meta", "br", "img", "input", "link"}


class Reader(HTMLParser):
    """Elements with their attributes and the text in them, and whether all are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="session")
def page(sealed_once: Path) -> str:
    return (sealed_once / "index.html").read_text()


@pytest.fixture(scope="session")
def reader(page: str) -> Reader:
    return Reader(page)


def test_nothing_is_loaded_from_anywhere(reader: Reader) -> None:
    for tag, attributes in reader.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "video", "audio", "source"}
        for name in ("src", "href", "action", "srcset", "poster", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/")), (tag, name, value)


def test_scripts_and_styles_are_the_page_s_own(page: str, reader: Reader) -> None:
    """One of each, and the content policy names exactly these by their hash."""
    policy = next(a["content"] for t, a in reader.elements if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert "default-src 'none'" in policy
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert [t for t, _ in reader.elements].count(tag) == 1
        hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{hashed}'" in policy
        assert "http" not in text
    assert not [name for _, attributes in reader.elements for name in attributes if name.startswith("on")]
    assert not [1 for _, attributes in reader.elements if "style" in attributes]


def test_foreign_text_is_shown_and_does_nothing(page: str, reader: Reader) -> None:
    assert HOSTILE[:30] not in page
    assert "<script>alert('<i>')</script><img src=x onerror=alert(1)>" in reader.text
    assert [t for t, _ in reader.elements].count("i") == 0
    assert all(
        (attributes.get("src") or "").startswith("data:") for t, attributes in reader.elements if t == "img"
    )


def test_invisible_and_direction_characters_are_written_out(page: str, reader: Reader) -> None:
    for character in "\0\x1b\u202e":
        assert character not in page
    assert r"\x00\x1b[31m\u202e]]>" in reader.text


def test_every_attack_has_a_row_and_its_details(reader: Reader) -> None:
    for technique in make_proof()[0]:
        assert ("a", {"href": f"#{technique.id}"}) in reader.elements
        (details,) = [a for t, a in reader.elements if t == "details" and a.get("id") == technique.id]
        assert details["data-group"] == str(technique.group)
    for words in ("2 blocked", "1 leaked", "1 inconclusive", "1 not supported"):
        assert words in reader.text


def test_both_controls_the_refusal_and_its_limits_are_told(reader: Reader) -> None:
    for words in (
        "Control: without enforcement", "It arrived.", "Attempt: contained", "Nothing arrived.",
        "metadata-address ×5 · transparent · GET 169.254.169.254:80 /latest/",
        "169.254.169.254 is special (metadata service); no rule can open it.",
        "Not covered Other spellings.", "ECONNRESET: ConnectionResetError",
        "none refused anything", "needs root: an ordinary user cannot do this",
        "What have I learned?", "stockade evidence verify DIR --key",
    ):  # fmt: skip
        assert words in reader.text


def test_screenshots_are_in_the_page_and_the_transcript_is_readable(reader: Reader) -> None:
    images = [str(a["src"]) for t, a in reader.elements if t == "img"]
    shown = [base64.b64decode(source.partition(",")[2]) for source in images]
    assert shown == [make_png(), make_png(9)]
    assert '{"action": "open", "said": "</pre><script>alert(' in reader.text


def test_a_page_of_a_failed_proof_says_so_and_one_of_a_passed_proof_does_not(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert "The claim does not hold here." in reader.text
    seal_proof(tmp_path / "passed", is_passed=True)
    passed = Reader((tmp_path / "passed" / "index.html").read_text()).text
    assert "The claim holds here" in passed
    seal_proof(tmp_path / "part", is_passed=True, is_whole=False, layers_off=("room",))
    part = Reader((tmp_path / "part" / "index.html").read_text()).text
    assert "it was not everything. Attacks were left out by choice. These layers were given up: room." in part


def test_a_picture_that_is_too_large_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(bytes(PICTURE_LIMIT_BYTES + 1))
    (tmp_path / "b.png").write_bytes(bytes(PICTURE_LIMIT_BYTES))
    first, second = Album(tmp_path).open_files(make_try(files={"a": "a.png", "b": "b.png"}))
    assert (first.source, second.source[:22]) == ("", "data:image/png;base64,")


def test_a_picture_of_two_moments_is_shown_once_and_before_the_transcript(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(make_png())
    (tmp_path / "t.json").write_text("no session")
    files = {"transcript": "t.json", "after": "a.png", "before": "a.png"}
    pictures = Album(tmp_path).open_files(make_try(files=files))
    assert [(one.name, one.text) for one in pictures] == [
        ("before and after", ""),
        ("transcript", "no session"),
    ]


def test_an_agent_s_session_is_told_step_by_step() -> None:
    action = {"action": "open", "url": "http://evil.test/"}
    steps = [
        {"number": 1, "action": action, "screenshot": None, "address": "", "came": "answered 200"},
        {"number": 2, "action": {"action": "click", "x": 3, "y": 4}, "screenshot": "ab" * 32,
         "address": "http://evil.test/", "came": "", "error": "ERR_FAILED"},
    ]  # fmt: skip
    session = {"prompt": "Do it.", "agent": "obedient", "ended": "done", "steps": steps}
    assert describe_transcript(json.dumps(session)).splitlines() == [
        "obedient agent, told: Do it.", "",
        "1. open http://evil.test/", "   answered 200",
        "2. click 3 4", "   acted on screenshot abababababababab… of http://evil.test/", "   ERR_FAILED",
        "", "ended: done",
    ]  # fmt: skip
    for other in ("plain text", "[]", '{"steps": [1]}', '{"steps": [], "agent": "a"}'):
        assert describe_transcript(other) == other


def test_the_matrix_is_shown_if_there_is_one(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stockade.evidence.record import OpenRecord
    from stockade.prove.ablation import Cell, Matrix, Row

    assert "What each layer stops" not in reader.text
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    techniques, judged = make_proof()
    row = Row(
        id="one-blocked",
        open=Cell.ARRIVED,
        full=Cell.BLOCKED,
        without={"mounts": Cell.HELD, "room": Cell.ARRIVED},  # not in the order of the columns
    )
    matrix = Matrix(layers=("room", "mounts"), rows=(row,))
    record = OpenRecord(tmp_path / "evidence", techniques, policy="")
    record.seal(judged, make_circumstances(), matrix.to_json())
    text = Reader((tmp_path / "evidence" / "index.html").read_text()).text
    assert "room alone stops one-blocked." in text
    assert "mounts alone stops none of these." in text
    assert "one-blocked arrived blocked arrived held" in text
    assert json.loads((tmp_path / "evidence" / "matrix.json").read_text())["layers"] == ["room", "mounts"]


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/hostname", "link.txt", "missing.txt"])
def test_a_file_outside_the_folder_is_not_read(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (picture,) = Album(folder).open_files(make_try(files={"transcript": path}))
    assert (picture.text, picture.source) == ("", "")


def test_prose_marks_code_and_escapes_the_rest() -> None:
    assert str(mark_code("read `a<b` & go")) == "read <code>a&lt;b</code> &amp; go"
    assert mark_code("one ` alone <b>") == "one ` alone <b>"  # a plain string, which the template escapes
    assert not hasattr(mark_code("one ` alone <b>"), "__html__")


def test_ordinary_text_of_any_script_is_left_alone() -> None:
    assert show("Grüße, 世界 🙂\n") == "Grüße, 世界 🙂\n"


def test_circumstances_name_a_model_that_steered() -> None:
    from stockade.evidence.statement import describe_model

    assert "none refused anything" in describe_model(make_circumstances())
    assert "some-model" in describe_model(make_circumstances(model="some-model"))
