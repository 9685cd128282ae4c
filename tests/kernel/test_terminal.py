"""The command's terminal is one of ours: keys and sizes pass, nothing is pushed back (boundary.md F13)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from functools import partial

import pytest
from kernel_steps import PYTHON, Contained

from doubles.screens import Screen


@pytest.fixture
def screens(contained: Contained) -> Iterator[list[Screen]]:
    opened: list[Screen] = []
    yield opened
    for screen in opened:
        screen.close()


@pytest.fixture
def screen(contained: Contained, screens: list[Screen]):  # type: ignore[no-untyped-def]
    def show(*argv: str, **kept: int) -> Screen:
        screens.append(Screen(partial(contained.start, *argv), **kept))
        return screens[-1]

    return show


def test_the_command_has_a_terminal_with_a_name_and_the_outer_size(screen) -> None:  # type: ignore[no-untyped-def]
    shown = screen(
        "sh",
        "-c",
        "tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; echo x > /dev/tty; echo end",
    )
    assert shown.end() == 0
    assert b"/dev/pts/0\r\n30 90\r\nall\r\nx\r\nend\r\n" in shown.seen


def test_a_redirected_error_stream_stays_apart(screen, tmp_path) -> None:  # type: ignore[no-untyped-def]
    log = os.open(tmp_path / "log", os.O_CREAT | os.O_RDWR)
    shown = screen("sh", "-c", "echo out; echo err >&2; [ -t 2 ] || echo pipe", stderr=log)
    assert shown.end() == 0
    assert b"err" not in shown.seen
    assert b"pipe" in shown.seen
    assert os.pread(log, 100, 0) == b"err\n"
    os.close(log)


def test_r118_ctrl_c_ends_the_command_and_then_the_tool(screen) -> None:  # type: ignore[no-untyped-def]
    # Not `sh -c 'echo ready; sleep 60'`: dash loses an interrupt that comes just as it starts sleep.
    shown = screen(PYTHON, "-I", "-c", "import time; print('ready', flush=True); time.sleep(60)")
    shown.expect(b"ready")
    shown.type(b"\x03")
    assert shown.end() == 128 + signal.SIGINT


def test_r121_ctrl_c_that_the_command_takes_ends_neither(screen) -> None:  # type: ignore[no-untyped-def]
    shown = screen("sh", "-c", "trap 'echo kept $((n=n+1))' INT; echo ready; while :; do sleep 0.05; done")
    shown.expect(b"ready")
    for count in (1, 2):
        shown.type(b"\x03")
        shown.expect(b"kept %d" % count)
    assert shown.process.poll() is None
    shown.type(b"\x03\x03\x03")  # the documented way out: five within two seconds
    assert shown.end() == 128 + signal.SIGINT


def test_r121_a_program_that_reads_the_key_itself_may_have_it_any_number_of_times(screen) -> None:  # type: ignore[no-untyped-def]
    program = """
import os, tty
tty.setraw(0); os.write(1, b"ready")
got = b""
while len(got) < 8:
    got += os.read(0, 8)
os.write(1, b"got %d" % got.count(3))
"""
    shown = screen(PYTHON, "-I", "-c", program)
    shown.expect(b"ready")
    shown.type(b"\x03" * 8)
    shown.expect(b"got 8")
    assert shown.end() == 0


def test_a_new_size_reaches_the_command(screen) -> None:  # type: ignore[no-untyped-def]
    shown = screen("sh", "-c", "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done")
    shown.expect(b"ready")
    fcntl.ioctl(shown.slave, termios.TIOCSWINSZ, struct.pack("4H", 41, 121, 0, 0))
    shown.process.send_signal(signal.SIGWINCH)
    shown.expect(b"41 121")
    assert shown.end() == 0


@pytest.mark.parametrize("how", ["exit", "signal", "killed inside"])
def test_the_outer_terminal_is_put_back(screen, how: str) -> None:  # type: ignore[no-untyped-def]
    shown = screen("sh", "-c", "printf '\\033[?2004h\\033[?1000h'; echo ready; read x; kill -9 $$")
    shown.expect(b"ready")
    assert not termios.tcgetattr(shown.slave)[3] & termios.ECHO
    if how == "signal":
        shown.process.terminate()
    else:
        shown.type(b"\r" if how == "killed inside" else b"\x04")
    shown.end()
    assert termios.tcgetattr(shown.slave) == shown.before
    # Modes that the command left on are switched off for the shell that comes next.
    assert b"\x1b[?2004l" in shown.seen
    assert b"\x1b[?1000l" in shown.seen


def test_ctrl_z_stops_the_command_and_the_tool_and_both_go_on(screen) -> None:  # type: ignore[no-untyped-def]
    # One process: a shell that is stopped between fork and exec of its child does not stop itself.
    program = "import time; print('ready', flush=True); time.sleep(0.7); print('after')"
    shown = screen(PYTHON, "-I", "-c", program)
    shown.expect(b"ready")
    shown.type(b"\x1a")
    deadline = time.monotonic() + 8
    while os.waitpid(shown.process.pid, os.WNOHANG | os.WUNTRACED)[1] >> 8 != signal.SIGSTOP:
        assert time.monotonic() < deadline, "the tool did not stop"
        time.sleep(0.02)
    assert termios.tcgetattr(shown.slave)[3] & termios.ECHO
    shown.process.send_signal(signal.SIGCONT)
    shown.expect(b"after")
    assert shown.end() == 0


PUSH = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
char = ctypes.create_string_buffer(b"#")
for fd in (0, 1, 2):
    for request in (0x5412, 0x5412 | 1 << 32, 0x5412 | 1 << 40):
        result = libc.syscall(16, fd, ctypes.c_ulong(request), char)
        print("push", result, ctypes.get_errno())
    sub = ctypes.create_string_buffer(bytes([3]))
    print("linux", libc.syscall(16, fd, ctypes.c_ulong(0x541c), sub), ctypes.get_errno())
print("end")
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers above are x86-64's")
def test_r130_nothing_is_pushed_into_the_operator_s_terminal(screen) -> None:  # type: ignore[no-untyped-def]
    shown = screen(PYTHON, "-I", "-c", PUSH)
    assert shown.end() == 0
    assert shown.seen.count(b"push -1 1\r\n") == 9  # EPERM, with high bits set too
    assert shown.seen.count(b"linux -1 1\r\n") == 3
    # Nothing waits to be read by the operator's shell.
    waiting = struct.unpack("i", fcntl.ioctl(shown.slave, termios.FIONREAD, b"\0" * 4))[0]
    assert waiting == 0


def test_f13_answers_and_clipboard_writes_do_not_reach_the_screen(screen) -> None:  # type: ignore[no-untyped-def]
    script = (
        r"printf '\033]52;c;ZXZpbA==\007A\033P$qm\033\\B\033[21tC\005D\033]0;title\007\033[31mred\033[0m\n'"
    )
    shown = screen("sh", "-c", script)
    assert shown.end() == 0
    assert b"ABCD\x1b]0;title\x1b\\\x1b[31mred\x1b[0m\r\n" in shown.seen


@pytest.mark.parametrize("stream", ["1", "2", "both"])
def test_f13_output_through_a_pipe_that_ends_in_the_terminal_is_filtered_too(
    contained: Contained, stream: str
) -> None:
    """Standard input from elsewhere, or one stream to a file: the rest still goes to the terminal."""
    master, slave = pty.openpty()
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    script = r"printf '\033]52;c;ZXZpbA==\007A\033[6nB\033[21tC\033[31mred\033[?1000h\033[?1h'"
    if stream == "both":  # half a sequence on each: they do not become one
        script = r"printf 'A\033['; sleep 0.3; printf '21tB' >&2; sleep 0.3; printf '31mC'"
    streams = {"stdout": slave, "stderr": slave} if stream == "both" else {}
    if stream == "2":
        script, streams = f"({script}) >&2", {"stderr": slave}
    elif stream == "1":
        streams = {"stdout": slave}
    worker = contained.start("sh", "-c", script, stdin=subprocess.DEVNULL, **streams)
    assert worker.wait(timeout=15) == 0
    seen = b""
    while select.select([master], [], [], 0.2)[0]:
        seen += os.read(master, 65536)
    assert seen == (b"A21tB\x1b[31mC" if stream == "both" else b"ABC\x1b[31mred\x1b[?1h\x1b[?1l")
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize(
    ("question", "answer"),
    [(r"\033[c", b"\x1b[?62;1c"), (r"\033[6n", b"\x1b[1;1R"), (r"\033[>q", b"\x1bP>|x\x1b\\"), ("no", b"")],
)
def test_f13_an_answer_to_a_command_that_has_ended_does_not_reach_the_shell(
    screen, question: str, answer: bytes
) -> None:  # type: ignore[no-untyped-def]
    """The terminal answers late: when it is asked once more, or when nobody is there any more."""
    shown = screen("printf", question)
    deadline = time.monotonic() + 10
    while b"\x1b[5n" not in shown.seen and shown.process.poll() is None and time.monotonic() < deadline:
        if select.select([shown.master], [], [], 0.02)[0]:
            shown.seen += os.read(shown.master, 65536)
    is_asked = b"\x1b[5n" in shown.seen
    shown.type(answer + (b"\x1b[0n" if is_asked else b""))
    assert shown.end() == 0
    assert is_asked == (answer != b"")  # a command that asked nothing costs no type-ahead
    mode = termios.tcgetattr(shown.slave)
    mode[3] &= ~termios.ICANON  # else only whole lines are counted
    termios.tcsetattr(shown.slave, termios.TCSANOW, mode)
    waiting = struct.unpack("i", fcntl.ioctl(shown.slave, termios.FIONREAD, b"\0" * 4))[0]
    assert waiting == 0


def test_in_the_background_the_tool_does_not_touch_the_terminal(contained: Contained) -> None:
    # A job in the background that reads or sets the terminal would be stopped by the kernel.
    master, slave = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    command = " ".join(f"'{word}'" for word in contained.command("echo", "background"))
    shell = subprocess.Popen(
        ["bash", "-mc", f"{command} & wait $!; echo code $?"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        preexec_fn=take_terminal,
        cwd=contained.work,
    )
    seen = b""
    deadline = time.monotonic() + 10
    while b"code" not in seen and time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 4096)
    shell.kill()
    shell.wait()
    assert b"background" in seen
    assert b"code 0" in seen
    os.close(master)
    os.close(slave)
