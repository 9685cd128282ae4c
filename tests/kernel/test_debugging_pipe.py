"""`run --debugging-pipe`: two pipes of ours on descriptors 3 and 4, and nothing of the caller's."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs("userns", "bwrap", "room")]

COMMAND = str(Path(sys.prefix) / "bin" / "stockade")
LOOK = """
import json, os, stat
kinds = {}
for name in os.listdir("/proc/self/fd"):
    try:
        kinds[name] = stat.filemode(os.fstat(int(name)).st_mode)[0]
    except OSError:
        pass
asked = os.read(3, 100).decode()
print("its own words")
os.write(4, json.dumps({"kinds": kinds, "asked": asked, "own input": os.read(0, 10).decode()}).encode())
"""
WRITE = """
import os
for _ in range(80):
    data = b"x" * 10**6 + END
    while data:
        data = data[os.write(4, data):]
"""


def run_piped(stockade: Any, *extra: str) -> Any:
    return stockade(["/usr/bin/python3", "-S", "-c", LOOK], extra=["-q", *extra], stdin=b"question")


def test_the_caller_s_input_and_output_are_descriptors_3_and_4(stockade: Any) -> None:
    run = run_piped(stockade, "--debugging-pipe")
    assert run.code == 0, run.err
    assert json.loads(run.out) == {
        "kinds": {str(number): "p" for number in range(5)}, "asked": "question", "own input": "",
    }  # fmt: skip
    assert run.err == "its own words\n"
    assert run.records[0]["debugging_pipe"] is True


def test_without_the_option_there_is_nothing_on_3_and_4(stockade: Any) -> None:
    run = run_piped(stockade)
    assert run.code == 1
    assert "OSError: [Errno 9]" in run.err
    assert run.records[0]["debugging_pipe"] is False


def test_a_socket_and_a_folder_of_the_caller_s_do_not_get_in(tmp_path: Path, workspace: Path) -> None:
    """What the caller has as its input is copied: the command holds a pipe, whatever the caller holds."""
    ours, theirs = socket.socketpair()
    folder = os.open(tmp_path, os.O_RDONLY)
    command = [COMMAND, "run", "-q", "--debugging-pipe", "--ledger", str(tmp_path / "ledger"), "--"]
    with ours, theirs:
        worker = subprocess.Popen(
            [*command, "/usr/bin/python3", "-S", "-c", LOOK],
            stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, cwd=workspace, pass_fds=(folder,),
        )  # fmt: skip
        theirs.close()
        ours.sendall(b"question")
        ours.settimeout(15)
        said = json.loads(ours.recv(4096))
        assert worker.wait(15) == 0
    os.close(folder)
    assert said["kinds"] == {str(number): "p" for number in range(5)}


def test_more_than_a_pipe_holds_goes_through_in_both_directions(tmp_path: Path, workspace: Path) -> None:
    size = 1_000_000
    copy = f"import os\nleft = {size}\nwhile left: left -= os.write(4, os.read(3, 70000))"
    done = subprocess.run(
        [COMMAND, "run", "-q", "--debugging-pipe", "--ledger", str(tmp_path / "ledger"), "--",
         "/usr/bin/python3", "-S", "-c", copy],
        input=os.urandom(1) * size, capture_output=True, cwd=workspace, timeout=18,
    )  # fmt: skip
    assert (done.returncode, len(done.stdout)) == (0, size), done.stderr


def test_the_plan_says_where_the_streams_go(stockade: Any) -> None:
    piped = stockade(["true"], extra=["--dry-run", "--debugging-pipe"])
    assert "streams: pipes; the caller's input and output are its descriptors 3 and 4" in piped.out
    plain = stockade(["true"], extra=["--dry-run"])
    assert "streams: pipes\n" in plain.out


def test_a_run_is_called_what_the_operator_says_and_no_name_is_used_twice(stockade: Any) -> None:
    run = stockade(["true"], extra=["--run-id", "nightly-7"])
    assert {record["run"] for record in run.records} == {"nightly-7"}
    shelf = stockade.ledger
    again = subprocess.run(
        [COMMAND, "run", "--run-id", "nightly-7", "--ledger", str(shelf), "--", "true"], capture_output=True
    )
    assert again.returncode == 102
    assert len(stockade.read_ledger(shelf)) == len(run.records)


@pytest.mark.parametrize("name", ["../other", "a/b", ".", "-x=", "a b", "x" * 65])
def test_a_name_that_is_no_name_is_refused(stockade: Any, name: str) -> None:
    run = stockade(["true"], extra=[f"--run-id={name}"])
    assert run.code == 102
    assert run.records == []
    assert "run-name" in run.err


def test_a_browser_that_writes_one_endless_message_does_not_fill_its_driver(stockade: Any) -> None:
    """Of 80 MB in one message 64 MiB arrive at most; the same in messages of one megabyte arrive all."""
    for end, least, most in ((b"\0", 80 * (10**6 + 1), 80 * (10**6 + 1)), (b"", 10**6, 1 << 26)):
        code = WRITE.replace("END", repr(end))
        run = stockade(["/usr/bin/python3", "-S", "-c", code], extra=["-q", "--debugging-pipe"])
        assert run.code == 0, run.err
        assert least <= len(run.out) <= most
