"""What comes from the stage and from the kernel's netlink is parsed with limits and judged in full."""

from __future__ import annotations

import socket
import struct
from typing import Any

import pytest

from stockade.errors import ContainmentError
from stockade.sandbox.lifeline import (
    NAMESPACES,
    Lifeline,
    StageFacts,
    compose_order,
    explain_seal_failure,
    parse_facts,
    verify_sealed,
    verify_stage,
)
from stockade.sandbox.netlink import nflog_bind_messages, parse_counter, split_messages

OUTSIDE = dict.fromkeys(NAMESPACES, 100)
STATUS = {"CapPrm": "0", "CapEff": "0", "CapBnd": "0", "CapAmb": "0", "NoNewPrivs": "1", "Seccomp": "2"}


def stage(namespaces: dict[str, int] | None = None, **status: str) -> StageFacts:
    return StageFacts(dict.fromkeys(NAMESPACES, 200) | (namespaces or {}), STATUS | status)


def verify(facts: StageFacts, has_room: bool = True) -> None:
    verify_stage(facts, outside=OUTSIDE, has_room=has_room)


def test_a_sound_stage_is_accepted() -> None:
    verify(stage())


@pytest.mark.parametrize("name", NAMESPACES)
def test_f9_a_shared_namespace_is_refused_by_name(name: str) -> None:
    with pytest.raises(ContainmentError, match=name):
        verify(stage({name: 100}))


@pytest.mark.parametrize("name", NAMESPACES)
def test_f9_a_namespace_that_is_not_told_is_refused(name: str) -> None:
    facts = stage()
    del facts.namespaces[name]
    with pytest.raises(ContainmentError, match=name):
        verify(facts)


@pytest.mark.parametrize("name", ["CapPrm", "CapEff", "CapBnd", "CapAmb"])
def test_f9_any_capability_is_refused(name: str) -> None:
    with pytest.raises(ContainmentError, match=name):
        verify(stage(**{name: "0000000000000400"}))


def test_f9_missing_no_new_privileges_are_refused() -> None:
    with pytest.raises(ContainmentError, match="NoNewPrivs"):
        verify(stage(NoNewPrivs="0"))
    verify(stage({"net": 100}), has_room=False)


def test_a_stage_that_only_says_that_it_is_sealed_is_refused() -> None:
    with pytest.raises(ContainmentError, match="filter"):
        verify_sealed(stage(Seccomp="0"), stage(Seccomp="0"), has_filter=True, has_eye=True)
    with pytest.raises(ContainmentError, match="eye"):
        verify_sealed(stage(), stage(), has_filter=True, has_eye=False)
    verify_sealed(stage(), stage(), has_filter=True, has_eye=True)
    verify_sealed(stage(Seccomp="0"), stage(Seccomp="0"), has_filter=False, has_eye=True)


def test_a_filter_that_was_there_before_is_not_taken_for_ours() -> None:
    before, after = stage(Seccomp_filters="1"), stage(Seccomp_filters="2")
    verify_sealed(after, before, has_filter=True, has_eye=True)
    with pytest.raises(ContainmentError, match="filter"):
        verify_sealed(before, before, has_filter=True, has_eye=True)
    verify_sealed(before, before, has_filter=False, has_eye=True)


def test_a_seal_that_failed_is_named_with_layer_errno_and_remedy() -> None:
    error = explain_seal_failure(["seal-failed", "filter", "16"], has_eye=True)  # EBUSY, errno(3)
    assert error.code == "seal-failed"
    assert "layer notify (the eye) could not be put up: errno 16" in str(error)
    assert "--without-layer=notify" in error.hint
    without_eye = explain_seal_failure(["seal-failed", "filter", "22"], has_eye=False)  # EINVAL
    assert "layer seccomp" in str(without_eye)
    assert "--without-layer=memfd" in without_eye.hint


def test_the_ready_message_is_parsed_and_anything_else_refused() -> None:
    facts = parse_facts("ready\nns-net 42\nCapEff: 0000\nUid: 1 1 1 1\nnonsense", "ready")
    assert facts.namespaces == {"net": 42}
    assert facts.status["CapEff"] == "0000"
    with pytest.raises(ContainmentError):
        parse_facts("Traceback", "ready")
    with pytest.raises(ContainmentError):
        parse_facts("ready", "sealed")


def test_messages_are_taken_whole_whatever_the_slicing() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    line = Lifeline(ours)
    frames = b"".join(len(text).to_bytes(4, "big") + text for text in (b"started", b"exited 3"))
    heard = []
    for at in range(len(frames)):
        theirs.send(frames[at : at + 1])
        heard += line.receive()[0]
    assert heard == ["started", "exited 3"]
    theirs.close()
    assert line.receive() == ([], [], True)
    line.close()


def test_r119_an_order_that_went_out_whole_is_followed_by_no_empty_write() -> None:
    """The command may have ended by then, and a write of nothing to a closed socket is EPIPE too."""

    class EndsAtOnce(socket.socket):
        def sendmsg(self, *given: Any) -> int:
            sent = super().sendmsg(*given)
            theirs.close()
            return sent

    left, theirs = socket.socketpair()
    ours = EndsAtOnce(fileno=left.detach())
    Lifeline(ours).send_order(b"go", [])
    ours.close()


def test_a_message_that_is_too_long_is_refused() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.send((1 << 20).to_bytes(4, "big"))
    with pytest.raises(ContainmentError):
        Lifeline(ours).receive()
    theirs.close()
    ours.close()


def test_the_order_keeps_bytes_that_are_not_utf_8() -> None:
    order = compose_order("/w", "", "012", "7 1 1", ("cmd", "\udcff"), {"A": "b"})
    assert order.split(b"\0") == [b"go", b"/w", b"cmd", b"012", b"7 1 1", b"2", b"cmd", b"\xff", b"A=b"]


def test_the_bind_message_has_the_layout_of_nfnetlink_log_h() -> None:
    bind, mode = nflog_bind_messages(7, 96)
    # nlmsghdr: length, type NFNL_SUBSYS_ULOG<<8|CONFIG, REQUEST|ACK; nfgenmsg: unspec, 0, group; CMD_BIND.
    assert bind == struct.pack("=IHHII", 28, 0x0401, 5, 1, 0) + b"\0\0\0\7" + struct.pack("=HHB3x", 5, 1, 1)
    assert struct.pack("!IBB", 96, 2, 0) in mode


def test_counters_are_read_from_a_kernel_answer() -> None:
    # NEWOBJ of `counter inet room syn { packets 3 bytes 180 }`, as nf_tables.h lays it out.
    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)

    data = attribute(1, (180).to_bytes(8, "big")) + attribute(2, (3).to_bytes(8, "big"))
    body = b"\1\0\0\0" + attribute(1, b"room\0") + attribute(2, b"syn\0") + attribute(0x8000 | 4, data)
    message = struct.pack("=IHHII", 16 + len(body), 0x0A12, 2, 1, 0) + body
    [(kind, found)] = list(split_messages(message))
    assert (kind, parse_counter(found)) == (0x0A12, ("syn", 3))


def test_broken_messages_end_the_walk() -> None:
    assert list(split_messages(struct.pack("=IHHII", 3, 1, 0, 0, 0))) == []
    assert list(split_messages(b"\1\2")) == []
