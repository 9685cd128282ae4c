"""The command line as a whole: its exit codes."""

from __future__ import annotations

import pytest

from stockade.cli.main import main


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "--phase", "nonsense", "--", "true"], 102),
        (["run", "--no-such-flag", "--", "true"], 102),
        (["run", "--help"], 0),
        (["decide", "--phase", "nonsense"], 2),
        (["no-such-command"], 2),
        ([], 2),
        (["--version"], 0),
    ],
)
def test_a_wrong_flag_of_run_is_told_apart_from_the_command_s_own_code(
    words: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    capsys.readouterr()
