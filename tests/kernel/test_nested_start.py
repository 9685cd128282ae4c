"""The worker has no switch: called again from inside, with all that is documented, the tool opens nothing."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import pytest
from kernel_steps import PYTHON, Contained

from stockade.cli import run as run_command

ROOT = Path(__file__).resolve().parents[2]


def documented_variables() -> list[str]:
    """Every variable of ours that the pages or the code name."""
    places = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", *ROOT.glob("src/**/*.py")]
    found = {name for path in places for name in re.findall(r"\bSTOCKADE(?:_[A-Z]+)*\b", path.read_text())}
    return sorted(found - {"STOCKADE"})


def flags() -> list[list[str]]:
    """Each option of `run`, those with choices once for each choice, with a value that asks for much."""
    parser = argparse.ArgumentParser()
    run_command.add_parser(parser.add_subparsers())
    values = {"--write": "/", "--read": "/", "--env": "LD_PRELOAD=/x", "--resolve": "x.test=127.0.0.1"}
    values |= {"--policy": "open.yaml", "--ledger": "/tmp/shelf", "--report": "/tmp/report"}
    found = []
    for action in parser._subparsers._group_actions[0].choices["run"]._actions:  # type: ignore[union-attr]
        option = next((text for text in action.option_strings if text.startswith("--")), "")
        if option and option not in ("--help", "--dry-run"):
            choices = action.choices or [values.get(option, "")]
            found += [[option] if action.nargs == 0 else [f"{option}={choice}"] for choice in choices]
    return found


# Started inside: all options one after the other, under variables that say "off" in every way.
NESTED = """
import os, subprocess, sys
names, source = sys.argv[1].split(","), sys.argv[2]
for value in ("0", "1", "off", "false", "", "disabled")[: 1 if sys.argv[4] != "0" else None]:
    os.environ |= {name: value for name in names}
    os.environ |= {name: "off" for name in ("STOCKADE", "STOCKADE_DISABLE", "STOCKADE_OFF", "NO_SANDBOX")}
    program = "import sys; sys.path[:0] = sys.argv.pop(1).split(':')\\n"
    program += "from stockade.cli.main import main; sys.exit(main())"
    words = sys.argv[3].split(" ") if value == "0" else ["--quiet"]
    for word in words:
        command = [sys.executable, "-I", "-c", program, source, "run", word, "--", "touch", "/tmp/started"]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        print(word, done.returncode, os.path.exists("/tmp/started"))
"""


PARTS = 6


def test_every_option_is_among_those_that_are_tried() -> None:
    words = [word for option in flags() for word in option]
    assert len(words) > 15
    assert "--without-layer=seccomp" in words
    assert "STOCKADE_UPSTREAM_PROXY" in documented_variables()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_r139_no_flag_and_no_variable_starts_anything_from_inside(contained: Contained, part: int) -> None:
    (contained.work / "open.yaml").write_text("version: 1\nexec: {mode: any}\nrules: [{allow: '*.test'}]\n")
    source = str(ROOT / "src")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    words = [word for option in flags() for word in option][part::PARTS]
    arguments = (",".join(documented_variables()), f"{source}:{packages}", " ".join(words), str(part))
    result = contained.python(NESTED, *arguments, options=("--read", source, "--read", packages))
    lines = result.out.splitlines()
    assert len(lines) == len(words) + (5 if part == 0 else 0), result.err
    for line in lines:
        word, code, is_started = line.rsplit(" ", 2)
        assert (int(code) in (102, 103, 104), is_started) == (True, "False"), word


def test_the_nested_tool_itself_runs_inside(contained: Contained) -> None:
    # The control of the test above: what is refused is the sandbox in the sandbox, not the program.
    source = str(ROOT / "src")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    program = (
        f"import sys; sys.path[:0] = [{source!r}, {packages!r}]; from stockade.cli.main import main; main()"
    )
    result = contained(
        *(PYTHON, "-I", "-c", program, "decide", "GET", "https://docs.test/"),
        options=("--read", source, "--read", packages),
    )
    assert "deny" in result.out, result.err
