"""What may be shown on the operator's terminal. Sequences and their meanings are from xterm's ctlseqs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.sandbox.terminal import AnswerBackFilter

# What a person wants to see: text, colors, cursor, titles, links, questions answered by numbers alone.
SHOWN = {
    "text": b"plain\r\n\ttext\b \x07",
    "utf-8 whose bytes look like C1 controls": "Ûěž€😀".encode(),
    "color": b"\x1b[1;31mred\x1b[0m",
    "rgb color with colons": b"\x1b[38:2:1:2:3mx",
    "cursor": b"\x1b[2J\x1b[1;1H\x1b[?25l\x1b[?25h",
    "character set": b"\x1b(B\x1b)0",
    "save and restore": b"\x1b7\x1b8\x1bM",
    "where is the cursor": b"\x1b[6n",
    "what are you": b"\x1b[c\x1b[>c",
    "size in letters": b"\x1b[18t",
    "title": b"\x1b]0;title\x1b\\",
    "link": b"\x1b]8;;https://a.test/?q=1\x1b\\text\x1b]8;;\x1b\\",
    "set a color": b"\x1b]11;#000000\x1b\\",
    "key modes": b"\x1b[>4;2m\x1b[>1u\x1b[=5;1u\x1b[<u\x1b[?1h\x1b=\x1b>",
    "insertion": b"\x1b[4h\x1b[4l",
    "line drawing": b"\x1b(0lqk\x1b(B\x0e\x0f\x1b#8",
    "full and soft reset": b"\x1bc\x1b[!p",
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_only_shows_something_passes_unchanged(name: str) -> None:
    assert AnswerBackFilter().feed(SHOWN[name]) == SHOWN[name]


REFUSED = {
    "clipboard write": b"\x1b]52;c;ZXZpbA==\x07",
    "clipboard read": b"\x1b]52;c;?\x07",
    "clipboard in 8-bit form": b"\x9d52;c;ZXZpbA==\x9c",
    "clipboard in UTF-8 C1 form": "\x9d52;c;ZXZpbA==\x9c".encode(),
    "title report": b"\x1b[21t",
    "icon title report": b"\x1b[20t",
    "title report with a leading zero": b"\x1b[021t",
    "title report in UTF-8 C1 form": "\x9b21t".encode(),
    "setting report (DECRQSS)": b"\x1bP$qm\x1b\\",
    "termcap report (XTGETTCAP)": b"\x1bP+q544e\x1b\\",
    "user-defined keys (DECUDK)": b"\x1bP0;1|17/6563686f0d\x1b\\",
    "tmux passthrough of a clipboard write": b"\x1bPtmux;\x1b\x1b]52;c;ZXZpbA==\x07\x1b\\",
    "screen checksum": b"\x1b[1;1;1;1;9;9*y",
    "cursor report": b"\x1b[1$w",
    "media copy": b"\x1b[5i",
    "answerback": b"\x05",
    "color question": b"\x1b]11;?\x07",
    "palette question": b"\x1b]4;1;?\x07",
    "kitty graphics, which opens files": b"\x1b_Gt=f;L2V0Yy9wYXNzd2Q=\x1b\\",
    "iTerm file download": b"\x1b]1337;File=name=eA==:eA==\x07",
    "privacy message": b"\x1b^x\x1b\\",
    "old identify": b"\x1bZ",
    "title with a line break in it": b"\x1b]0;a\rb\x07",
    "clipboard cut by an escape": b"\x1b]52;c;ZXZpbA==\x1b\\",
    "title report with a number that wraps": b"\x1b[4294967317t",
    "title report with a subparameter": b"\x1b[21:0t",
    "title report with an intermediate": b"\x1b[21 t",
    "window hidden": b"\x1b[2t",
    "window moved": b"\x1b[3;0;0t",
    "window resized": b"\x1b[8;1;1t",
    "lines set": b"\x1b[24t\x1b[4*|",
    "graphics query of rxvt (CVE-2021-33477)": b"\x1bG",
    "Latin-1 instead of UTF-8": b"\x1b%@",
    "answers in 8-bit form": b"\x1b G",
    "two-byte letters": b"\x1b$B",
    "VT52 mode": b"\x1b[?2l",
    "Tektronix mode": b"\x1b[?38h",
    "log to a file": b"\x1b[?46h",
    "132 columns": b"\x1b[?3h\x1b[?40h",
    "keyboard locked": b"\x1b[2h",
    "controls shown": b"\x1b[3h",
    "font question (CVE-2022-45063)": b"\x1b]50;?\x07",
    "folder": b"\x1b]7;file://elsewhere.test/x\x07",
    "shell marks that make clicks input": b"\x1b]133;A;click_events=1\x1b\\",
    "editor's shell marks": b"\x1b]633;E;ls\x07",
    "notification": b"\x1b]9;text\x07\x1b]777;notify;a;b\x07\x1b]99;;x\x1b\\",
    "macro of ConEmu": b'\x1b]9;6;"x"\x07',
    "pointer shape, text size": b"\x1b]22;wait\x07\x1b]66;s=2;x\x07",
    "link to a manual page (CVE-2023-46321)": b"\x1b]8;;x-man-page://1/ls\x1b\\",
    "link to a shell (CVE-2023-46322)": b"\x1b]8;;ssh://-oProxyCommand=x\x1b\\",
    "link to a file": b"\x1b]8;;file:///etc/passwd\x1b\\",
    "window title of screen": b"\x1bktitle\x1b\\",
    "another console": b"\x1b[12;3]",
    "macro": b"\x1b[1*z",
    "self test": b"\x1b[4;1y",
    "locator": b"\x1b[1;2'z\x1b['|\x1b[1'{",
    "colors as a report": b"\x1b[#R\x1b[#|",
    "setting as a report": b'\x1b["v\x1b[2&w',
    "end of a paste": b"\x1b[200~\x1b[201~",
    "parameters in a disorder": b"\x1b[1 2q\x1b[;?1h",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_answers_or_acts_is_left_out(name: str) -> None:
    shown = AnswerBackFilter().feed(b"A" + REFUSED[name] + b"B")
    assert shown in (b"AB", b"A\x1b\\B")  # a lone string terminator shows nothing


@pytest.mark.parametrize("name", REFUSED)
def test_any_slicing_leaves_it_out_as_well(name: str) -> None:
    data = b"A" + REFUSED[name] + b"B"
    whole = AnswerBackFilter().feed(data)
    one_by_one = AnswerBackFilter()
    assert b"".join(one_by_one.feed(data[i : i + 1]) for i in range(len(data))) == whole


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_slicing_never_matters(data: bytes, cuts: list[int]) -> None:
    whole = AnswerBackFilter().feed(data)
    sliced = AnswerBackFilter()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parts = [data[a:b] for a, b in pairwise(places)]
    assert b"".join(map(sliced.feed, parts)) == whole


_INTRODUCERS = st.sampled_from(
    [b"\x1b]52;", b"\x1bP", b"\x1b_G", b"\x9d52;", b"\xc2\x9d52;", b"\x1b[21t", b"\x05"]
)


@given(
    st.lists(st.one_of(st.binary(max_size=6), _INTRODUCERS, st.just(b"\x1b"), st.just(b"\x07")), max_size=12)
)
def test_nothing_that_answers_survives_in_any_mixture(parts: list[bytes]) -> None:
    shown = AnswerBackFilter().feed(b"".join(parts))
    for sign in (b"\x1b]52", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1b[21t", b"\x05"):
        assert sign not in shown
    # Fed again the result is unchanged: nothing was joined into something new.
    assert AnswerBackFilter().feed(shown) == shown


@given(st.text(st.characters(min_codepoint=0xA0), max_size=50))
def test_letters_of_every_script_pass(text: str) -> None:
    assert AnswerBackFilter().feed(text.encode()) == text.encode()


def test_an_endless_string_takes_no_memory_and_shows_nothing() -> None:
    screen = AnswerBackFilter()
    assert screen.feed(b"\x1b]0;") == b""
    for _ in range(100):
        assert screen.feed(b"x" * 10_000) == b""
    assert len(screen._sequence) < 10_000
    assert screen.feed(b"\x07after") == b"after"


def test_the_second_byte_of_a_letter_never_becomes_a_control() -> None:
    # In Latin-1 the letter c3 9b is followed by CSI: with `ESC % @` passed on, this would ask for the title.
    assert AnswerBackFilter().feed(b"\x1b%@" + "Û21t".encode()) == "Û21t".encode()


def test_where_no_answer_can_be_read_nothing_is_asked() -> None:
    screen = AnswerBackFilter(may_ask=False)
    for question in QUESTIONS.values():
        shown = screen.feed(question)
        assert shown in (b"", b"\r", b"\x1b[?25h"), shown
    assert not screen.has_asked
    for name in SILENT:
        assert AnswerBackFilter(may_ask=False).feed(SILENT[name]) == AnswerBackFilter().feed(SILENT[name])


def test_modes_that_a_killed_program_left_on_are_switched_off() -> None:
    screen = AnswerBackFilter()
    screen.feed(b"\x1b[?1000;1006h\x1b[?2004h\x1b[?25l\x1b[?1049h")
    screen.feed(b"\x1b[?1006l")
    assert screen.restore() == b"\x1b[?1000l\x1b[?2004l\x1b[?1049l\x1b[?25h"
    assert AnswerBackFilter().restore() == b""


# What a killed program leaves on, and what undoes it, by xterm's ctlseqs and kitty's keyboard protocol.
LEFT_ON = [
    (b"\x1b[?7l", b"\x1b[?7h"),
    (b"\x1b[?1000h\x1b[?1000s\x1b[?1000l\x1b[?1000r", b"\x1b[?1000l"),
    (b"\x1b[>1u", b"\x1b[<9u\x1b[=0u"),
    (b"\x1b[>4;2m", b"\x1b[>4m"),
    (b"\x1b[5 q", b"\x1b[0 q"),
    (b"\x1b=", b"\x1b>"),
    (b"\x1b(0", b"\x1b(B"),
    (b"\x0e", b"\x0f"),
    (b"\x1b[4h", b"\x1b[4l"),
    (b"\x1b]11;#000\x07\x1b]4;1;#fff\x07", b"\x1b]111\x1b\\\x1b]104\x1b\\"),
]


@pytest.mark.parametrize(("used", "undone"), LEFT_ON)
def test_what_was_left_on_is_undone(used: bytes, undone: bytes) -> None:
    screen = AnswerBackFilter()
    screen.feed(used)
    assert screen.restore() == undone


# What makes a terminal answer although it is harmless (xterm's ctlseqs; the last ones kitty's and VTE's).
QUESTIONS = {
    "primary attributes": b"\x1b[c",
    "primary attributes with a zero": b"\x1b[0c",
    "secondary attributes": b"\x1b[>c",
    "tertiary attributes": b"\x1b[=c",
    "status": b"\x1b[5n",
    "cursor": b"\x1b[6n",
    "cursor with page": b"\x1b[?6n",
    "version": b"\x1b[>q",
    "version with a zero": b"\x1b[>0q",
    "window size": b"\x1b[14t",
    "size of a letter": b"\x1b[16t",
    "size in letters": b"\x1b[18t",
    "size with a leading zero": b"\x1b[018t",
    "mode": b"\x1b[?2026$p",
    "terminal parameters": b"\x1b[x",
    "graphics": b"\x1b[?1;1;0S",
    "key modifiers": b"\x1b[?4m",
    "keyboard": b"\x1b[?u",
    "in UTF-8 C1 form": "\x9bc".encode(),
    "with a control in it": b"\x1b[\r6n",
    "mouse reports": b"\x1b[?1003h",
    "focus reports": b"\x1b[?25;1004h",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_that_is_passed_on_is_noted_however_it_is_cut(name: str) -> None:
    for pieces in ([QUESTIONS[name]], [bytes((byte,)) for byte in QUESTIONS[name]]):
        screen = AnswerBackFilter()
        shown = b"".join(map(screen.feed, pieces))
        assert shown
        assert screen.has_asked
        assert screen.has_asked_status == (shown.strip()[-1:] == b"n")


SILENT = {
    **{
        name: SHOWN[name]
        for name in SHOWN
        if name not in ("where is the cursor", "what are you", "size in letters")
    },
    "cursor movements": b"\x1b[A\x1b[2B\x1b[3;4H\x1b[K\x1b[?J\x1b[1;20r\x1b[s\x1b[u\x1b[2L\x1b[3M\x1b[4S",
    "cursor style": b"\x1b[2 q",
    "keypad": b"\x1b=\x1b>",
    "soft reset": b"\x1b[!p",
    "paste brackets, other screen, batches": b"\x1b[?2004h\x1b[?1049h\x1b[?2026h\x1b[?1003l",
    "title kept and put back": b"\x1b[22;0;0t\x1b[23;0;0t",
    "window sized": b"\x1b[8;24;80t",
    "keyboard set and put back": b"\x1b[>1u\x1b[<u\x1b[>4;2m",
    "question that is not passed on": b"\x1b[21t\x1bP$qm\x1b\\\x05\x1bZ\x1b]11;?\x07",
    "question in a title": b"\x1b]0;[6n\x07[6n",
    "question that was broken off": b"\x1b[6\x18n",
}


@pytest.mark.parametrize("name", SILENT)
def test_what_makes_no_terminal_speak_is_no_question(name: str) -> None:
    screen = AnswerBackFilter()
    screen.feed(SILENT[name])
    assert not screen.has_asked
