"""What the worker saw, in words that a learner reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stockade.lab.live.words import describe_said, has_answered, has_started
from stockade.lab.live.worker import Worker

REFUSED = "HTTP/1.1 403 Forbidden\r\nX-Stockade-Reason: not-listed\r\nContent-Length: 2\r\n\r\n{}"
SENT = {"step": "send", "first": "GET / HTTP/1.1", "bytes": 80}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            {"step": "name", "name": "a.test", "address": "198.18.0.2"},
            "asks for the address of a.test: 198.18.0.2",
        ),
        (
            {"step": "name", "name": "a.test", "error": "gaierror", "detail": "x", "errno": "-2"},
            "no such name",
        ),
        (
            {"step": "connect", "host": "a.test", "address": "198.18.0.2", "port": 80},
            "connected (to the gateway)",
        ),
        (
            {
                "step": "tls",
                "sni": "a.test",
                "error": "SSLError",
                "errno": "EPERM",
                "detail": "[SSL: TLSV1_ALERT_ACCESS_DENIED] tlsv1 alert access denied (_ssl.c:992)",
            },
            "starts TLS naming a.test: TLS alert 49 (access denied)",  # RFC 8446 6: access_denied(49)
        ),
        ({"step": "tls", "sni": None}, "starts TLS without a name: done"),
        (
            {**SENT, "reply": REFUSED, "size": len(REFUSED), "ended": True},
            "403 Forbidden from the gateway, reason not-listed",
        ),
        (
            {**SENT, "reply": "HTTP/1.1 200 OK\r\n\r\nhello", "size": 24, "ended": True},
            "200 OK, 5 bytes of content",
        ),
        (
            {**SENT, "reply": "HTTP/1.1 302 Range\r\n\r\nhello", "size": 27, "ended": True},
            "302 Found, 5 bytes of content",  # RFC 9110 15.4.3; the stand-in has one phrase for all
        ),
        ({**SENT, "reply": "", "size": 0, "ended": True}, "closed without an answer"),
        ({**SENT, "error": "ConnectionResetError", "errno": "ECONNRESET", "detail": "x"}, ": reset"),
        (
            {"step": "datagram", "host": "a.test", "port": 123, "error": "TimeoutError", "detail": "x"},
            "no answer",
        ),
        (
            {"step": "question", "name": "a.test", "kind": "TXT", "rcode": 5, "count": 0},
            "refused (code 5)",
        ),  # RFC 1035 4.1.1
        ({"step": "question", "name": "a.test", "kind": "AAAA", "rcode": 0, "count": 0}, "an empty answer"),
        (
            {
                "step": "run",
                "argv": ["sh", "-i"],
                "error": "PermissionError",
                "errno": "EACCES",
                "detail": "x",
            },
            "runs sh -i: refused with EACCES",
        ),
        ({"step": "run", "argv": ["git", "log"], "code": 0, "out": "one\n"}, "it ran, and printed one"),
        ({"step": "run", "argv": ["git", "log"], "code": 3, "out": ""}, "it ran and ended with code 3"),
        (
            {
                "step": "socket",
                "what": "/run/x.sock",
                "error": "OSError",
                "errno": "EAFNOSUPPORT",
                "detail": "",
            },
            "refused with EAFNOSUPPORT",
        ),
        (
            {
                "step": "connect",
                "entry": "socks5",
                "host": "a.test",
                "port": 443,
                "socks": 2,
                "error": "x",
                "detail": "",
            },
            "answer 2 (not allowed by the rules)",
        ),  # RFC 1928 6
        (
            {
                "step": "connect",
                "entry": "http-proxy",
                "host": "a.test",
                "port": 443,
                "connect": REFUSED,
                "error": "x",
            },
            "reason not-listed",
        ),
    ],
)
def test_a_step_in_words(said: dict[str, Any], text: str) -> None:
    (told,) = describe_said([said])
    assert text in told["text"]


def test_foreign_text_is_cut_and_made_showable() -> None:
    said = {"step": "run", "argv": ["x"], "code": 0, "out": "\x1b[31m" + "A" * 5000}
    (told,) = describe_said([said])
    assert "\x1b" not in told["text"]
    assert len(told["text"]) < 600


@pytest.mark.parametrize(
    "said", [{}, {"step": "send"}, {"step": ["x"]}, {"text": "nonsense"}, {"step": "question", "rcode": "x"}]
)
def test_what_a_worker_makes_up_is_told_as_text(said: dict[str, Any]) -> None:
    assert describe_said([said])[0]["text"] is not None


def test_a_program_ran_if_it_came_to_an_end_and_a_question_was_answered_if_no_code_says_otherwise() -> None:
    assert has_started([{"step": "run", "code": 1}])
    assert not has_started([{"step": "run", "error": "PermissionError"}])
    assert has_answered([{"step": "question", "rcode": 0}])
    assert not has_answered([{"step": "question", "rcode": 3}])


def test_the_last_words_of_a_run_are_text_though_a_program_inside_may_write_them(tmp_path: Path) -> None:
    worker = Worker.__new__(Worker)
    worker._errors = tmp_path / "errors.txt"
    worker._errors.write_bytes(b"first\nsecond\n\x1b[31mEVIL\x07\xff\n" + "\u202ethird".encode())
    said = worker.last_words()
    assert said.isprintable()
    assert "EVIL" in said
    assert "first" not in said
