"""DNS questions and answers, checked against dnspython and RFC 1035."""

from __future__ import annotations

from ipaddress import ip_address

import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdatatype
import pytest

from stockade.errors import ProtocolViolation
from stockade.net.host import Host, HostRefusal
from stockade.protocol.dns import (
    Question,
    Rcode,
    answer_address,
    answer_empty,
    answer_error,
    build_error_for,
    frame_message,
    parse_question,
    take_message,
)


def asked(name: str, kind: str = "A", **options: object) -> bytes:
    return dns.message.make_query(name, kind, **options).to_wire()  # type: ignore[arg-type]


def raw_question(*labels: bytes, kind: bytes = b"\0\1", flags: bytes = b"\1\0") -> bytes:
    name = b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
    return b"\x12\x34" + flags + b"\0\1\0\0\0\0\0\0" + name + kind + b"\0\1"


@pytest.mark.parametrize("kind", ["A", "AAAA", "HTTPS", "SVCB", "TXT", "ANY", "CAA"])
def test_questions_of_a_real_resolver(kind: str) -> None:
    question = parse_question(asked("App.test.", kind, use_edns=0))
    assert question.name == Host("app.test")
    assert question.shown == "App.test"
    assert question.query_type == kind
    assert question.has_edns


@pytest.mark.parametrize("edns", [False, 0])
def test_an_address_answer_is_what_a_resolver_expects(edns: bool | int) -> None:
    query = dns.message.make_query("aPp.TeSt.", "A", use_edns=edns)
    reply = dns.message.from_wire(answer_address(parse_question(query.to_wire()), ip_address("198.18.0.7")))
    assert query.is_response(reply)
    assert reply.flags & dns.flags.RA
    assert reply.flags & dns.flags.RD
    assert [record.to_text() for record in reply.answer] == ["aPp.TeSt. 1 IN A 198.18.0.7"]
    assert reply.edns == (0 if edns is not False else -1)


def test_0x20_the_case_of_the_question_is_echoed() -> None:
    answer = answer_address(parse_question(asked("wWw.ExAmPlE.tEsT")), ip_address("198.18.0.7"))
    assert b"\3wWw\7ExAmPlE\4tEsT\0" in answer


def test_an_ipv6_answer() -> None:
    reply = dns.message.from_wire(
        answer_address(parse_question(asked("a.test", "AAAA")), ip_address("fdfe::7"))
    )
    assert reply.answer[0].to_text() == "a.test. 1 IN AAAA fdfe::7"


def test_an_empty_answer_is_noerror_without_records() -> None:
    reply = dns.message.from_wire(answer_empty(parse_question(asked("a.test", "HTTPS"))))
    assert reply.rcode() == dns.rcode.NOERROR
    assert not reply.answer
    assert not reply.authority


@pytest.mark.parametrize("rcode", [Rcode.SERVFAIL, Rcode.REFUSED, Rcode.NXDOMAIN])
def test_errors_carry_their_code(rcode: Rcode) -> None:
    query = dns.message.make_query("a.test", "TXT")
    reply = dns.message.from_wire(answer_error(parse_question(query.to_wire()), rcode))
    assert query.is_response(reply)
    assert reply.rcode() == int(rcode)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ((b"a.b", b"test"), "a\\x2eb.test"),
        ((b"evil\0", b"test"), "evil\\x00.test"),
        ((b"\xff\xfe", b"test"), "\\xff\\xfe.test"),
        ((b"white space", b"test"), "white space.test"),
        ((), "."),
    ],
)
def test_r025_odd_labels_are_refused_names_and_shown_escaped(labels: tuple[bytes, ...], shown: str) -> None:
    question = parse_question(raw_question(*labels))
    assert isinstance(question.name, HostRefusal)
    assert question.shown == shown
    assert dns.message.from_wire(answer_error(question, Rcode.NXDOMAIN)).rcode() == dns.rcode.NXDOMAIN


def test_r044_a_secret_in_labels_is_on_record_as_it_was_asked() -> None:
    question = parse_question(asked("6b65793d736563726574.x.evil.test", "TXT"))
    assert question.shown == "6b65793d736563726574.x.evil.test"


def test_unknown_types_and_classes_have_words() -> None:
    assert parse_question(raw_question(b"a", kind=b"\x12\x34")).query_type == "TYPE4660"
    chaos = raw_question(b"version", b"bind", kind=b"\0\x10")[:-2] + b"\0\3"
    question = parse_question(chaos)
    assert question.query_type == "CLASS3 TXT"
    assert not question.is_address_query


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 12, id="header only"),
        pytest.param(raw_question(b"a", flags=b"\x81\0"), id="an answer"),
        pytest.param(raw_question(b"a", flags=b"\x29\0"), id="an update"),
        pytest.param(raw_question(b"a")[:-1], id="cut in the class"),
        pytest.param(raw_question(b"a") + b"x", id="a byte too many"),
        pytest.param(raw_question(b"a").replace(b"\0\1\0\0\0\0", b"\0\2\0\0\0\0"), id="two questions"),
        pytest.param(raw_question(b"a").replace(b"\0\1\0\0\0\0", b"\0\0\0\0\0\0"), id="no question"),
        pytest.param(raw_question(b"a").replace(b"\0\1\0\0\0\0", b"\0\1\0\1\0\0"), id="brings an answer"),
        pytest.param(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1", id="compressed name"),
        pytest.param(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\x40a\0\1\0\1", id="label type 01"),
        pytest.param(b"\x12\x34\1\0\0\1\0\0\0\0\0\0\x05ab", id="label beyond the end"),
        pytest.param(raw_question(*[b"x" * 63] * 4), id="name above 255"),
        pytest.param(b"\0" * 70000, id="above 64 KiB"),
    ],
)
def test_malformed_messages_are_refused(message: bytes) -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parse_question(message)
    assert caught.value.code == "malformed-question"


def test_the_longest_name_passes() -> None:
    labels = [b"x" * 63, b"y" * 63, b"z" * 63, b"w" * 61]  # 64+64+64+62 and the root: 255 bytes
    assert isinstance(parse_question(raw_question(*labels)), Question)
    with pytest.raises(ProtocolViolation):
        parse_question(raw_question(*labels[:3], b"w" * 62))


def test_two_opt_records_are_refused_and_one_is_not() -> None:
    opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"
    base = raw_question(b"a")
    one = base[:10] + b"\0\1" + base[12:] + opt
    assert parse_question(one).has_edns
    with pytest.raises(ProtocolViolation):
        parse_question(base[:10] + b"\0\2" + base[12:] + opt + opt)


def test_malformed_questions_get_formerr_and_answers_get_nothing() -> None:
    reply = build_error_for(raw_question(b"a")[:-1])
    assert reply is not None
    assert dns.message.from_wire(reply).rcode() == dns.rcode.FORMERR
    update = build_error_for(raw_question(b"a", flags=b"\x29\0"))
    assert update is not None
    parsed = dns.message.from_wire(update)
    assert (parsed.rcode(), parsed.opcode()) == (dns.rcode.NOTIMP, dns.opcode.UPDATE)
    assert build_error_for(raw_question(b"a", flags=b"\x81\0")) is None
    assert build_error_for(b"short") is None


def test_messages_on_a_stream_are_taken_one_by_one() -> None:
    buffer = bytearray(frame_message(b"first") + frame_message(b"second")[:4])
    assert take_message(buffer) == b"first"
    assert take_message(buffer) is None
    buffer += b"cond"
    assert take_message(buffer) == b"second"
    assert not buffer
