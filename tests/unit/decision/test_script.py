"""The first line of a script means here what it means to the kernel: it is asked, for each line."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stockade.decision.script import Script, parse_script, parse_script_text

ECHO = b"/bin/echo"  # prints its arguments: the line's own, if any, and the script's path


@pytest.fixture
def kernel_runs(tmp_path: Path) -> Callable[[bytes], bytes | None]:
    """What `/bin/echo` prints as the interpreter of a file that begins so; None if the kernel refuses it."""
    path = tmp_path / "script"

    def run(head: bytes) -> bytes | None:
        path.write_bytes(head)
        path.chmod(0o755)
        try:
            return subprocess.run([path], capture_output=True, check=True).stdout
        except OSError:
            return None

    return run


def spoken(head: bytes, path: Path) -> bytes | None:
    """The same by our reading."""
    script = parse_script(head[:256])
    if script is None:
        return None
    words = [] if script.argument is None else [os.fsencode(script.argument)]
    return b" ".join([*words, os.fsencode(path)]) + b"\n" if script.interpreter == "/bin/echo" else b"another"


@pytest.mark.parametrize(
    "head",
    [
        b"#!/bin/echo\n",
        b"#!/bin/echo",  # the end of the file ends the line
        b"#! /bin/echo\n",
        b"#!\t \t/bin/echo \t\n",
        b"#!/bin/echo a\n",
        b"#!/bin/echo a b\tc \n",  # one argument, blanks inside
        b"#!/bin/echo\ta\nsecond line",
        b"#!/bin/echo a",
        b"#!/bin/echo\0ignored\n",
        b"#!/bin/echo a\0ignored\n",
        b"#!/bin/echo \0ignored\n",  # an empty argument
        b"#!/bin/echo ",
        b"#!/bin/echo \r\n",  # a carriage return is an argument
        b"#!/bin/echo "
        + b"a" * 243
        + b"\n",  # 2 + 9 + 1 + 243 = 255 bytes, then the line feed: the last that fits
        b"#!/bin/echo " + b"a" * 244 + b"\n",  # byte 256 is cut off
        b"#!/bin/echo " + b"a" * 400 + b"\n",
        b"#!" + b" " * 244 + b"/bin/echo" + b"\n",  # the name ends at byte 255
        b"#!" + b" " * 244 + b"/bin/echo" + b" tail\n",
        b"#!" + b" " * 245 + b"/bin/echo" + b"\n",  # its end is not seen: refused
        b"#!" + b" " * 400 + b"/bin/echo\n",
        b"#!\n",
        b"#!",
        b"#! \t\n",
        b"#!\0/bin/echo\n",
        b"# !/bin/echo\n",
        b" #!/bin/echo\n",
        b"\xef\xbb\xbf#!/bin/echo\n",
    ],
)
def test_the_kernel_reads_the_line_as_we_do(
    kernel_runs: Callable[[bytes], bytes | None], tmp_path: Path, head: bytes
) -> None:
    assert spoken(head, tmp_path / "script") == kernel_runs(head)


def test_the_kernel_agrees_about_made_up_lines(
    kernel_runs: Callable[[bytes], bytes | None], tmp_path: Path
) -> None:
    """Blanks, NULs, ends of line and lengths around the limit, in any order."""
    draw = random.Random(20261130)
    starts = 0
    for _ in range(150):
        pad = b"".join(
            draw.choice([b" ", b"\t"]) for _ in range(draw.choice([0, 0, 1, 2, 243, 244, 245, 246]))
        )
        tail = b"".join(
            draw.choice([b" ", b"\t", b"\0", b"\n", b"a", b"b" * 200]) for _ in range(draw.randrange(6))
        )
        head = b"#!" + pad + ECHO + tail
        ours = spoken(head, tmp_path / "script")
        if ours == b"another":
            continue  # a name that goes on, as in /bin/echoa: there is no such program to ask
        starts += ours is not None
        assert ours == kernel_runs(head), head
    assert 40 < starts < 150  # both outcomes were tried


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        # env(1): without -S all that follows is one program's name
        ("/usr/bin/env python3", ("python3",)),
        ("/usr/bin/env python3 -u", ("python3 -u",)),
        ("/usr/bin/env -S python3 -u", ("python3", "-u")),
        ("/usr/bin/env -Spython3", ("python3",)),
        ("/usr/bin/env -iS python3 -I", ("python3", "-I")),
        ("/usr/bin/env --split-string=python3 -I", ("python3", "-I")),
        ("/usr/bin/env -S -u HOME -C /tmp A=1 B=2 python3 x", ("python3", "x")),
        ("/usr/bin/env -S --unset HOME --chdir=/ sh -e", ("sh", "-e")),
        ("/bin/sh", ("sh",)),
        ("/bin/sh -e", ("sh", "-e")),
        ("/usr/local/bin/python3.12", ("python3.12",)),
        ("/work/.venv/bin/python", ("/work/.venv/bin/python",)),
        ("/opt/env/python", ("/opt/env/python",)),
        ("/usr/bin/env", ("env",)),
        ("/usr/bin/env -i", ("env",)),
        ("/usr/bin/env A=b", ("env",)),
    ],
)
def test_a_script_is_run_by_hand_with_its_interpreter(line: str, programs: tuple[str, ...]) -> None:
    script = parse_script(f"#!{line}\n".encode())
    assert script is not None
    assert script.text == line
    assert script.command == programs
    assert parse_script_text(script.text) == script


def test_bytes_that_are_not_utf_8_survive() -> None:
    script = parse_script(b"#!/bin/\xff\xfe x\n")
    assert script == Script("/bin/\udcff\udcfe", "x")


def test_a_compiled_program_is_no_script() -> None:
    assert parse_script(b"\x7fELF\x02\x01\x01") is None
    assert parse_script(b"") is None
