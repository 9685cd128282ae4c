"""`stockade prove`: choosing, listing, exit codes, and what it prints. Nothing is attacked here."""

from __future__ import annotations

import io
import json
import sys

import pytest

from stockade.cli.main import main
from stockade.cli.progress import Progress, describe_left
from stockade.cli.prove import SUPPORTED_AT_LEAST, exit_code
from stockade.cli.prove_words import as_report, print_matrix, print_summary, result_line
from stockade.prove.ablation import Cell, Matrix, Row
from stockade.prove.trial import Judged, Judgement, Result, Trial, Try


def judged(result: Result, name: str = "an-attack", why: str = "why") -> Judged:
    trial = Trial(id=name, control=Try(seconds=0.25), attempt=Try(seconds=0.5))
    return Judged(trial=trial, judgement=Judgement(id=name, result=result, why=why))


BLOCKED, LEAKED, UNCLEAR, APART = (
    judged(result) for result in (Result.BLOCKED, Result.LEAKED, Result.INCONCLUSIVE, Result.NOT_SUPPORTED)
)


@pytest.mark.parametrize(
    ("results", "is_whole", "code"),
    [
        ([BLOCKED] * SUPPORTED_AT_LEAST, True, 0),
        ([BLOCKED] * (SUPPORTED_AT_LEAST - 1), True, 1),
        ([BLOCKED] * (SUPPORTED_AT_LEAST - 1) + [APART], True, 1),
        ([BLOCKED] * SUPPORTED_AT_LEAST + [APART], True, 0),
        ([BLOCKED] * SUPPORTED_AT_LEAST + [UNCLEAR], True, 1),
        ([BLOCKED] * SUPPORTED_AT_LEAST + [UNCLEAR, LEAKED], True, 4),
        ([BLOCKED], False, 0),
        ([APART], False, 1),
        ([], False, 1),
        ([LEAKED], False, 4),
    ],
)
def test_only_a_whole_catalogue_that_is_blocked_ends_with_0(
    results: list[Judged], is_whole: bool, code: int
) -> None:
    assert exit_code(results, is_whole) == code


def test_the_list_names_each_attack_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--list", "--only", "metadata-decimal"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.split(maxsplit=2) == [
        "metadata-decimal", "gateway", "Metadata service by decimal address",
    ]  # fmt: skip


def test_the_list_as_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--list", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    keys = {"id", "title", "group", "layer", "risk", "references", "not_supported"}
    assert all(set(one) == keys for one in listed)
    [one] = [one for one in listed if one["id"] == "metadata-decimal"]
    assert (one["layer"], one["risk"], one["not_supported"]) == ("gateway", "metadata-credentials", None)
    assert "CWE-918" in one["references"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "metadata-decimel"], "did you mean metadata-decimal?"),
        (["--list", "metadata"], "--only ID"),
        (["--lanes", "0"], "bad-lanes"),
        (["--ablate", "--without-layer", "room"], "ablate-alone"),
        (["--without-layer", "privileges"], "invalid choice"),
        (["--range-only", "--out", "somewhere"], "range-alone"),
    ],
)
def test_a_wrong_word_is_answered_before_anything_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", *words]) == 2
    assert said in capsys.readouterr().err


# --- what is printed ------------------------------------------------------------------------------


def test_foreign_text_stays_on_one_line() -> None:
    line = result_line(judged(Result.LEAKED, why="it arrived: a\r\n\x1b[2Jb"))
    assert line.isprintable()
    assert line.startswith("leaked        an-attack: ")


def test_the_summary_counts_and_names_what_is_not_supported(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary([BLOCKED, BLOCKED, judged(Result.NOT_SUPPORTED, "other", "needs gcc")], 12.4)
    said = capsys.readouterr().out
    assert "not-supported other: needs gcc" in said
    assert "3 attacks in 12 s: 2 blocked, 0 leaked, 0 inconclusive, 1 not supported" in said
    assert "each arrived without enforcement" in said


def test_attacks_that_lack_the_same_share_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    lacking = [judged(Result.NOT_SUPPORTED, name, why) for name, why in (("a", "x"), ("b", "y"), ("c", "x"))]
    print_summary([BLOCKED, *lacking], 1)
    assert capsys.readouterr().out.splitlines()[:2] == ["not-supported a, c: x", "not-supported b: y"]


def test_a_summary_with_a_leak_claims_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary([BLOCKED, LEAKED], 1)
    assert "each arrived" not in capsys.readouterr().out


def test_a_summary_without_a_layer_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary([LEAKED], 1, ["room"])
    said = capsys.readouterr().out
    assert "1 attack in" in said
    assert "layers given up: room" in said


MATRIX = Matrix(
    layers=("room", "notify"),
    rows=(
        Row(
            id="an-attack",
            open=Cell.ARRIVED,
            full=Cell.BLOCKED,
            without={"room": Cell.ARRIVED, "notify": Cell.HELD},
        ),
    ),
)


def test_the_report_is_one_object_of_plain_values() -> None:
    report = json.loads(json.dumps(as_report([BLOCKED, LEAKED], MATRIX, ["room"], 1.23, 4)))
    assert report["counts"] == {"blocked": 1, "leaked": 1, "inconclusive": 0, "not-supported": 0}
    assert (report["exit_code"], report["layers_off"], report["seconds"]) == (4, ["room"], 1.2)
    assert report["attacks"][0] == {
        "id": "an-attack", "result": "blocked", "why": "why", "stopped_by": "", "seconds": 0.75,
    }  # fmt: skip
    assert report["matrix"]["held_alone_by"] == {"room": ["an-attack"], "notify": []}
    assert "matrix" not in as_report([BLOCKED], None, [], 1, 0)


def test_the_matrix_says_what_each_layer_stops_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_matrix(MATRIX)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["open", "full", "room", "notify"]
    assert lines[2].split() == ["an-attack", "●", "·", "●", "○"]
    assert "without room      arrive: an-attack" in lines
    assert any(line.startswith("without notify    arrive: nothing") for line in lines)


# --- progress -------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_and_a_clean_last_line() -> None:
    terminal = Terminal()
    progress = Progress(2, terminal)
    progress.step("first")
    progress.say("a line that stays")
    progress.close()
    assert "1/2" in terminal.getvalue()
    assert "\r\x1b[Ka line that stays\n" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_file_gets_plain_lines_only() -> None:
    file = io.StringIO()
    progress = Progress(2, file)
    progress.step("first")
    progress.say("a line that stays")
    progress.close()
    assert file.getvalue() == "a line that stays\n"


@pytest.mark.parametrize("total", [10, 25, 198])
def test_a_file_is_told_ten_times_how_far_it_is_and_the_last_time_that_all_is_done(total: int) -> None:
    file = io.StringIO()
    progress = Progress(total, file)
    for number in range(total):
        progress.step(f"attack {number}")
    lines = file.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1] == f"stockade: {total} of {total}"


@pytest.mark.parametrize(
    ("done", "total", "seconds", "text"),
    [(0, 10, 5, ""), (5, 10, 10, "0:10 left"), (1, 10, 10, "1:30 left"), (10, 10, 50, "0:00 left")],
)
def test_the_time_left_is_that_of_the_rest_at_the_same_pace(
    done: int, total: int, seconds: float, text: str
) -> None:
    assert describe_left(done, total, seconds) == text


def test_listing_needs_neither_the_range_nor_the_gateway() -> None:
    import subprocess

    script = (
        "import sys; from stockade.cli.main import main; main(['prove', '--list']);"
        " print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert not {"dns", "cryptography", "asyncio", "stockade.gateway.server"} & loaded
