"""A contained command begins, runs and ends as it would plainly: codes, streams, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_steps import PYTHON, Contained

# --- R119: whose code is it ------------------------------------------------------------------

# (script for sh, what a shell shows for it): by the shell's own convention, not by running ours.
CODES = [
    ("exit 0", 0),
    ("exit 1", 1),
    ("exit 42", 42),
    ("exit 255", 255),
    ("kill -TERM $$", 128 + 15),
    ("kill -KILL $$", 128 + 9),
    ("kill -SEGV $$", 128 + 11),
    ("trap 'exit 3' TERM; kill -TERM $$; sleep 1", 3),
]


@pytest.mark.parametrize(("script", "code"), CODES)
def test_r119_exit_codes_are_the_shell_s(contained: Contained, script: str, code: int) -> None:
    assert contained("sh", "-c", script).code == code
    plain = subprocess.run(["sh", "-c", script]).returncode
    assert (128 - plain if plain < 0 else plain) == code


def test_r119_a_missing_program_is_127_and_an_unexecutable_one_126(contained: Contained) -> None:
    (contained.work / "data").write_text("no program")
    (contained.work / "data").chmod(0o644)
    assert contained("no-such-program").code == 127
    assert contained("./no-such-program").code == 127
    assert contained("./data").code == 126
    assert contained("/").code == 126
    (contained.work / "data").chmod(0o755)
    (contained.work / "data").write_text("exit 5")  # without #!: every shell hands it to sh
    assert contained("./data").code == 5


# --- standard streams ------------------------------------------------------------------------


def test_input_output_and_errors_pass_byte_for_byte(contained: Contained) -> None:
    data = os.urandom(1 << 20)
    result = subprocess.run(
        contained.command("sh", "-c", "tee /dev/stderr"),
        input=data,
        capture_output=True,
        cwd=contained.work,
        timeout=15,
    )
    assert result.stdout == data
    assert result.stderr == data


def test_r122_dev_null_and_a_closed_pipe_are_an_end_of_input(contained: Contained) -> None:
    assert contained("cat", stdin=b"").code == 0
    done = subprocess.run(
        contained.command("cat"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=15,
        cwd=contained.work,
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_r122_an_idle_pipe_as_input_does_not_hold_a_command_that_does_not_read(contained: Contained) -> None:
    # The writer never writes and never closes: exactly what the plain command would see.
    read_end, write_end = os.pipe()
    worker = contained.start("echo", "done", stdin=read_end)
    out, _ = worker.communicate(timeout=15)
    assert (out, worker.returncode) == (b"done\n", 0)
    os.close(write_end)
    os.close(read_end)


def test_a_file_as_input_is_left_where_the_command_stopped_reading(contained: Contained) -> None:
    # `while read line; do stockade run -- head -c 2; done < file`: the loop must get its other lines.
    lines = contained.work.parent / "lines"
    lines.write_text("a\nb\nc\nd\n")
    with lines.open("rb", buffering=0) as file:
        assert file.read(2) == b"a\n"
        worker = contained.start("head", "-c", "2", stdin=file)
        assert worker.communicate(timeout=15)[0] == b"b\n"
        assert file.read() == b"c\nd\n"


def test_output_is_complete_when_the_command_ends(contained: Contained) -> None:
    result = contained("sh", "-c", "seq 200000; echo last >&2")
    assert result.out.splitlines()[-1] == "200000"
    assert result.err == "last\n"


def test_a_reader_that_goes_away_ends_the_command_as_in_a_pipeline(contained: Contained) -> None:
    worker = contained.start("yes")
    assert worker.stdout is not None
    assert worker.stdout.read(4) == b"y\ny\n"
    worker.stdout.close()
    assert worker.wait(timeout=15) == 128 + signal.SIGPIPE


def test_a_slow_reader_slows_the_writer_and_not_the_memory(contained: Contained) -> None:
    # dd reports how much it could write before the pipes were full; nobody reads its output.
    copy = "dd if=/dev/zero bs=64k count=1000 2>/dev/null"
    script = copy + " & sleep 0.7; cat /proc/$!/io | sed -n 's/wchar: //p' >&2"
    worker = contained.start("sh", "-c", script + "; kill $!")
    assert worker.stderr is not None
    written = int(worker.stderr.readline())
    worker.kill()
    worker.communicate()
    assert written < 1 << 20  # two pipes and one piece in between, not 64 MB


def test_the_caller_s_streams_stay_blocking(contained: Contained) -> None:
    # The flag belongs to the open file that a shell shares with us.
    read_end, write_end = os.pipe()
    contained.start("true", stdin=read_end, stdout=write_end).wait(timeout=15)
    assert os.get_blocking(read_end)
    assert os.get_blocking(write_end)
    os.close(read_end)
    os.close(write_end)


# --- signals ---------------------------------------------------------------------------------

TRAP = """
trap 'echo got {0}' {0}
echo ready
n=0; while [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done
"""


def expect_line(worker: subprocess.Popen[bytes], line: bytes) -> None:
    assert worker.stdout is not None
    assert worker.stdout.readline() == line


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"])
def test_r119_signals_to_the_tool_reach_the_command(contained: Contained, name: str) -> None:
    worker = contained.start("sh", "-c", TRAP.format(name))
    expect_line(worker, b"ready\n")
    worker.send_signal(getattr(signal, f"SIG{name}"))
    expect_line(worker, f"got {name}\n".encode())
    worker.kill()
    worker.communicate()


def test_r119_an_untrapped_term_ends_the_command_and_is_told(contained: Contained) -> None:
    worker = contained.start("sh", "-c", "echo ready; exec sleep 60")
    expect_line(worker, b"ready\n")
    worker.terminate()
    assert worker.wait(timeout=10) == 128 + 15
    worker.communicate()


def test_r121_a_third_interrupt_within_two_seconds_kills_what_ignores_it(contained: Contained) -> None:
    worker = contained.start("sh", "-c", "trap 'echo kept' INT; echo ready; while :; do sleep 0.05; done")
    expect_line(worker, b"ready\n")
    for _ in range(2):  # the first two go to the command, which goes on
        worker.send_signal(signal.SIGINT)
        expect_line(worker, b"kept\n")
    worker.send_signal(signal.SIGINT)
    assert worker.wait(timeout=10) == 128 + 2
    worker.communicate()


def test_nohup_is_kept(contained: Contained) -> None:
    def ignore_hangups() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    worker = contained.start("sh", "-c", "echo ready; sleep 0.3; echo survived", preexec_fn=ignore_hangups)
    expect_line(worker, b"ready\n")
    worker.send_signal(signal.SIGHUP)
    expect_line(worker, b"survived\n")
    worker.communicate()


def test_stop_and_continue_reach_the_command_and_the_tool_stops_with_it(contained: Contained) -> None:
    worker = contained.start("sh", "-c", "echo ready; exec sleep 1")
    expect_line(worker, b"ready\n")
    worker.send_signal(signal.SIGTSTP)
    wait_for(lambda: state_of(worker.pid) == "T")
    worker.send_signal(signal.SIGCONT)
    assert worker.wait(timeout=10) == 0
    worker.communicate()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def wait_for(condition: Callable[[], bool], within_s: float = 8.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


# --- what else a plain command would see -------------------------------------------------------


def test_orphans_are_reaped_and_zombies_do_not_pile_up(contained: Contained) -> None:
    script = "for n in 1 2 3 4 5; do (sh -c 'sleep 0.05 &' &); done; sleep 0.5; ps -eo stat= | grep -c Z"
    assert contained("sh", "-c", script).out == "0\n"


def test_folder_arguments_and_odd_characters_arrive_unchanged(contained: Contained) -> None:
    odd = ["", "a b", "ü", "\udcff", "-x", "new\nline", "'\"$`"]
    shown = contained.python(
        "import sys, os; print(os.getcwd(), [os.fsencode(a) for a in sys.argv[1:]])", *odd
    )
    assert shown.out == f"{contained.work} {[os.fsencode(a) for a in odd]}\n"


def test_the_mask_for_new_files_is_the_caller_s(contained: Contained) -> None:
    options = ("--write", str(contained.work))
    contained("touch", "made", options=options, umask=0o027)
    assert (contained.work / "made").stat().st_mode & 0o777 == 0o640


def test_signals_and_masks_are_the_defaults_in_the_command(contained: Contained) -> None:
    status = dict(
        line.split(":\t") for line in contained("cat", "/proc/self/status").out.splitlines() if ":\t" in line
    )
    # 32 and 33 are the C library's own: it ignores them in whatever `make` starts (posix_spawn), and lets
    # nobody change that (nptl(7)). A plain command inherits them just the same.
    inner = 1 << 31 | 1 << 32
    assert int(status["SigBlk"], 16) & ~inner == 0
    assert int(status["SigIgn"], 16) & ~inner == 0


PROXY_AND_LOADER = {
    "HTTPS_PROXY": "http://p.test:1",
    "http_proxy": "http://p.test:1",
    "LD_PRELOAD": "/tmp/x.so",
    "PYTHONSTARTUP": "/tmp/x.py",
    "NODE_OPTIONS": "--require /tmp/x.js",
    "GIT_SSH_COMMAND": "x",
    "BASH_ENV": "/tmp/x.sh",
    "AWS_SECRET_ACCESS_KEY": "s",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/x",
}


def test_r144_variables_that_load_code_move_traffic_or_hold_secrets_are_not_passed(
    contained: Contained,
) -> None:
    kept = {"LANG": "C.UTF-8", "TERM": "dumb", "LC_TIME": "C"}
    given = {name: value for name, value in PROXY_AND_LOADER.items() if name != "LD_PRELOAD"} | kept
    shown = contained("env", environment=given).out
    for name in PROXY_AND_LOADER:
        assert f"{name}=" not in shown
    for name, value in kept.items():
        assert f"{name}={value}\n" in shown
    assert "X=1\n" in contained("env", options=("--env", "X=1")).out


def test_programs_of_the_caller_s_path_are_found_in_the_workspace(contained: Contained) -> None:
    tool = contained.work / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text(f"#!{PYTHON}\nprint('ran')\n")
    tool.chmod(0o755)
    path = f"/nowhere:{tool.parent}:{os.environ['PATH']}"
    assert contained("tool", environment={"PATH": path}).out == "ran\n"


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_is_as_good_as_dev_null(work: Path, closed: int) -> None:
    # Else a pipe of ours would get its number, and the command would be fed from it for ever.
    ledger = work.parent / "ledger"
    policy = work.parent / "policy.yaml"
    policy.write_text("version: 1\nexec: {mode: any}\n")
    run = [sys.executable, "-m", "stockade", "run", "-q", "-p", str(policy), "--ledger", str(ledger), "--"]
    script = f'exec {closed}{"<" if closed == 0 else ">"}&-; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *run, "sh", "-c", "cat; echo out; echo err >&2"],
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=15,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (b"" if closed == 1 else b"out\n")
    assert done.stderr == (b"" if closed == 2 else b"err\n")
