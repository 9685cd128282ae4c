"""What one record looks like, whatever a worker put into it. Named after public reports R163 and R164."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InternalError
from stockade.ledger.record import (
    RECORD_LIMIT_BYTES,
    Redactor,
    clean_fields,
    clean_text,
    decision_id,
    encode_record,
    is_run_id,
    judge_shape,
    new_run_id,
)

REDACTOR = Redactor(b"a key of a run of a test suite..")
SECRET = "hunter2-correct-horse"

# What a reader may take for the end of a line: those of str.splitlines, which are more than LF.
LINE_BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
HOSTILE_TEXTS = {
    "cr-lf": 'a\r\n{"kind":"attempt"}',
    "nul": "a\x00b",
    "escape": "a\x1b[2J\x1b]0;title\x07b",
    "u0085": "a\x85b",
    "u2028": "a\u2028b\u2029c",
    "bidi": "a\u202egnp.exe\u202c\u2066b\u2069",
    "zero-width": "pay\u200bpal\ufeff\u2060",
    "tags": "a\U000e0041\U000e0042b",
    "lone surrogate": "a\ud800b",
    "not utf-8": b"a\xff\xfe\x80b".decode("utf-8", "surrogateescape"),
    "del": "a\x7fb",
    "100 kB": "x" * 100_000,
    "100 kB of line breaks": "\n" * 100_000,
    "100 kB of U+2028": "\u2028" * 100_000,
}


def encode(**fields: object) -> bytes:
    return encode_record(fields, REDACTOR)


def shown_text(line: bytes) -> str:
    return line.decode("utf-8")


@pytest.mark.parametrize("key", ["name", "path", "raw", "why", "host", "sni", "detail"])
@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_r163_hostile_text_stays_on_one_short_line(key: str, text: str) -> None:
    line = encode(kind="attempt", **{key: text})
    assert len(shown_text(line).splitlines()) == 1
    assert not re.search(
        "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\u200b\ufeff]", shown_text(line)
    )
    assert len(line) <= RECORD_LIMIT_BYTES
    assert isinstance(json.loads(line)[key], str)


@pytest.mark.parametrize("argument", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS.keys())
def test_r163_hostile_arguments_stay_on_one_short_line(argument: str) -> None:
    line = encode(kind="attempt", argv=["curl", argument] * 200)
    assert len(shown_text(line).splitlines()) == 1
    assert len(line) <= RECORD_LIMIT_BYTES


PIECES = st.sampled_from(
    [
        *(
            "/usr/bin/git",
            "clone",
            " ",
            "é",
            '"',
            "\\",
            "\n",
            "\x7f",
            "\ud800",
            "x" * 5000,
            ":",
            "=",
            "?a=b",
            "@",
        ),
        *("password", "token", "Authorization: ", "--password", "hunter2", "https://me:word@host.test/?q=1"),
        *("ghp_0123456789abcdefghij", "sk-0123456789abcdef0123", "-", "_"),
    ]
)
TEXTS = st.lists(PIECES, max_size=4).map("".join)


@given(argv=st.lists(TEXTS, max_size=5), program=TEXTS, why=TEXTS, parent=st.none() | TEXTS)
def test_a_command_is_written_the_same_whether_its_fields_are_looked_at_one_by_one_or_not(
    argv: list[str], program: str, why: str, parent: str | None
) -> None:
    started_by = None if parent is None else {"pid": 7, "program": parent, "exec": None}
    fields = {"kind": "attempt", "program": program, "why": why, "parent": started_by, "path": None}
    line = encode(argv=argv, **fields)
    # A part that is two levels deep is never written the short way, so here each field is looked at.
    slowly = json.loads(encode(argv=argv, **fields, deep={"deeper": {"deepest": 1}}))
    del slowly["deep"]
    assert json.loads(line) == slowly


def test_long_text_is_cut_with_a_marker_that_tells_its_length() -> None:
    path = json.loads(encode(path="/" + "x" * 99_999))["path"]
    assert path.startswith("/xxx")
    assert path.endswith("…[100000 characters]")
    assert len(path) < 5000


def test_many_items_are_counted_and_not_all_kept() -> None:
    argv = json.loads(encode(argv=["x"] * 10_000))["argv"]
    assert argv[-1] == "…[10000 items]"


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ["GET", "/a/b.html", "münchen.example", "日本", 'say "no" to it', "C:\\temp", "a - b"]:
        assert json.loads(encode(why=text))["why"] == text


@given(st.text())
def test_any_text_is_one_line_and_parses_back(text: str) -> None:
    line = encode(why=text, name=text, argv=[text, text])
    assert len(shown_text(line).splitlines()) == 1
    assert set(json.loads(line)) == {"why", "name", "argv"}


@given(st.binary(max_size=200))
def test_any_bytes_are_one_line_and_parse_back(data: bytes) -> None:
    line = encode(raw=data)
    assert len(shown_text(line).splitlines()) == 1
    assert isinstance(json.loads(line)["raw"], str)


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once


# RFC 8785 section 3.2.2.2 and its appendix B sample: what other readers will hash.
def test_rfc8785_sample_of_strings_and_literals() -> None:
    line = encode(literals=[None, True, False], string='€$"\\/')
    assert line == '{"literals":[null,true,false],"string":"€$\\"\\\\/"}'.encode()


def test_rfc8785_keys_are_sorted_at_every_level() -> None:
    assert encode(b=1, a={"d": 2, "c": 3}) == b'{"a":{"c":3,"d":2},"b":1}'


@pytest.mark.parametrize("value", [1.5, float("nan"), 2**53, -(2**53), object(), {1, 2}])
def test_what_other_readers_would_round_or_not_know_is_refused(value: object) -> None:
    with pytest.raises(InternalError):
        encode(size_bytes=value)


@pytest.mark.parametrize("value", [0, -1, 2**53 - 1, 1 - 2**53, True, None])
def test_exact_integers_are_kept(value: object) -> None:
    assert json.loads(encode(size_bytes=value))["size_bytes"] == value


@pytest.mark.parametrize("key", ["Größe", "with space", "line\nbreak", "\x1b", "", "k" * 256])
def test_keys_outside_ascii_words_are_refused(key: str) -> None:
    with pytest.raises(InternalError):
        encode_record({"facts": {key: 1}}, REDACTOR)


def test_host_names_can_be_keys_and_are_sorted() -> None:
    line = encode(resolve={"b.test": ["127.0.0.1"], "1.b.test": ["::1"]})
    assert line == b'{"resolve":{"1.b.test":["::1"],"b.test":["127.0.0.1"]}}'


# --- R164: secrets ---------------------------------------------------------------------

SECRET_TEXTS = {
    "userinfo in a proxy setting": ("why", f"http_proxy=http://user:{SECRET}@proxy.test:3128/"),
    "userinfo in a refused host": ("raw", f"user:{SECRET}@evil.test"),
    "userinfo with a second at sign": ("raw", f"http://user:{SECRET}@x@evil.test/"),
    "password alone as userinfo": ("raw", f"{SECRET}@evil.test"),
    "refused host quoted in a sentence": ("why", f'the host "user:{SECRET}@evil.test" has a user part'),
    "access token in a query": ("raw", f"http://evil.test/?access_token={SECRET}"),
    "query without a name": ("path", f"/fetch?{SECRET}"),
    "query in a sentence": ("why", f"GET /x?a=1&b={SECRET} is not permitted"),
    "authorization header": ("detail", f"Authorization: Bearer {SECRET}"),
    "proxy-authorization header": ("detail", f"CONNECT: Proxy-Authorization: Basic {SECRET}"),
    "cookie header": ("detail", f"Cookie: a=b; session={SECRET}"),
    "set-cookie header": ("detail", f"set-cookie: session={SECRET}; Path=/"),
    "x-api-key header": ("detail", f"X-Api-Key: {SECRET}"),
    "assignment": ("detail", f"env AWS_SECRET_ACCESS_KEY={SECRET} aws s3 ls"),
}


@pytest.mark.parametrize(("key", "text"), SECRET_TEXTS.values(), ids=SECRET_TEXTS.keys())
def test_r164_secrets_in_texts_do_not_reach_a_record(key: str, text: str) -> None:
    line = encode(kind="attempt", **{key: text})
    assert SECRET not in line.decode()
    assert "[redacted " in line.decode()


SECRET_COMMANDS = {
    "curl -u": ["curl", "-u", f"me:{SECRET}", "https://app.test/"],
    "curl -uX": ["/usr/bin/curl", f"-ume:{SECRET}"],
    "curl --user=": ["curl", f"--user=me:{SECRET}"],
    "curl -H": ["curl", "-H", f"Authorization: token {SECRET}"],
    "curl -HX": ["curl", f"-HAuthorization: token {SECRET}"],
    "curl --header=": ["curl", f"--header=X-Api-Key: {SECRET}"],
    "curl -b": ["curl", "-b", f"session={SECRET}"],
    "curl -d": ["curl", "-d", f'{{"prompt": "{SECRET}"}}'],
    "curl --data-binary": ["curl", "--data-binary", SECRET],
    "curl --json=": ["curl", f"--json={SECRET}"],
    "url with userinfo": ["git", "clone", f"https://x:{SECRET}@code.test/a.git"],
    "url with query": ["wget", f"https://app.test/?{SECRET}"],
    "--token X": ["tool", "--token", SECRET],
    "--api-key=X": ["tool", f"--api-key={SECRET}"],
    "--token=X -u Y": ["curl", "--oauth2-bearer=abc", "--proxy-password=abc", "-u", f"me:{SECRET}"],
    "--password X": ["tool", "--db-password", SECRET],
    "environment": ["env", f"GITHUB_TOKEN={SECRET}", "tool"],
    "sshpass": ["sshpass", "-p", SECRET, "ssh", "app.test"],
    "mysql -pX": ["mysql", f"-p{SECRET}"],
    "bytes": [b"curl", b"-u", SECRET.encode()],
}


@pytest.mark.parametrize("argv", SECRET_COMMANDS.values(), ids=SECRET_COMMANDS.keys())
def test_r164_secrets_in_commands_do_not_reach_a_record(argv: list[object]) -> None:
    line = encode(kind="run.opened", argv=argv)
    assert SECRET not in line.decode()
    assert "[redacted " in line.decode()


@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1" * 20,
        "sk-" + "proj-a1b2c3d4e5f6g7h8",
        "xoxb-" + "1234567890-abcdefghij",
        "AKIA" + "IOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    ],
)
def test_r164_well_known_tokens_are_recognized_anywhere(token: str) -> None:
    assert token not in encode(path=f"/bot/{token}/send").decode()
    assert token not in encode(argv=["echo", token]).decode()


def test_harmless_commands_are_not_redacted() -> None:
    argv = ["git", "clone", "git@code.test:a/b.git", "-u", "--depth=1", "https://code.test/a/b", "-d", "x"]
    assert json.loads(encode(argv=argv))["argv"] == argv


def test_equal_secrets_can_be_matched_within_a_run_and_not_across_runs() -> None:
    other = Redactor(b"another key of another run......")
    assert REDACTOR.mark(SECRET) == REDACTOR.mark(SECRET)
    assert REDACTOR.mark(SECRET) != REDACTOR.mark(SECRET + "x")
    assert REDACTOR.mark(SECRET) != other.mark(SECRET)


def test_redacting_twice_changes_nothing() -> None:
    for key, text in SECRET_TEXTS.values():
        once = json.loads(encode(**{key: text}))[key]
        assert json.loads(encode(**{key: once}))[key] == once


@pytest.mark.parametrize(
    "piece",
    [
        "password",
        "a-",
        "eyJ",
        "eyJ-",
        "?",
        "=",
        "a=",
        "token=",
        "token: ",
        "@",
        "a:b@",
        "//a@",
        ":",
        " ",
        "\u202e",
    ],
)
def test_text_made_to_be_slow_to_clean_is_not_slow(piece: str) -> None:
    text = piece * (160_000 // len(piece))
    started = time.process_time()
    encode(path=text)
    assert time.process_time() - started < 1  # quadratic work on this would take minutes; usual are 5 ms


# --- shapes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields", "seq"),
    [
        ("run.opened", {}, 0),
        ("attempt", {"verdict": "deny"}, 1),
        ("attempt", {"verdict": "proxy"}, 1),
        ("outcome", {"of": 1}, 2),
        ("agent.step", {}, 2),
        ("agent.outcome", {"of": 2}, 3),
        ("policy.changed", {}, 3),
        ("phase.changed", {}, 3),
        ("heartbeat", {}, 3),
        ("recovered", {}, 3),
        ("run.closed", {}, 4),
    ],
)
def test_right_shapes_pass(kind: str, fields: dict[str, object], seq: int) -> None:
    judge_shape(kind, fields, seq)


@pytest.mark.parametrize(
    ("kind", "fields", "seq"),
    [
        ("attempted", {"verdict": "deny"}, 1),
        ("attempt", {"verdict": "deny"}, 0),
        ("run.opened", {}, 1),
        ("attempt", {}, 1),
        ("attempt", {"verdict": "allowed"}, 1),
        ("attempt", {"verdict": 0}, 1),
        ("outcome", {"of": 1, "verdict": "allow"}, 2),
        ("run.closed", {"verdict": "deny"}, 2),
        ("outcome", {}, 2),
        ("outcome", {"of": 2}, 2),
        ("outcome", {"of": 0}, 2),
        ("outcome", {"of": True}, 2),
        ("agent.outcome", {}, 3),
        ("agent.outcome", {"of": 3}, 3),
        ("agent.step", {"verdict": "allow"}, 2),
        ("attempt", {"verdict": "deny", "seq": 7}, 1),
        ("attempt", {"verdict": "deny", "time": "now"}, 1),
    ],
)
def test_wrong_shapes_are_refused(kind: str, fields: dict[str, object], seq: int) -> None:
    with pytest.raises(InternalError):
        judge_shape(kind, fields, seq)


def test_run_names_sort_by_time_and_can_be_folders() -> None:
    early = new_run_id("2026-11-30T08:55:00.123456Z", b"\x1f\x7f\x3a")
    late = new_run_id("2026-11-30T08:55:01.000000Z", b"\x00\x00\x00")
    assert early == "20261130T085500-1f7f3a"
    assert early < late
    assert is_run_id(early)


@pytest.mark.parametrize("text", ["", ".", "..", "../x", "a/b", "-f", "a\n", "a b", "ä", "x" * 65])
def test_what_cannot_be_a_folder_or_an_argument_is_no_run_name(text: str) -> None:
    assert not is_run_id(text)


def test_decision_id_is_short_and_tells_run_and_record() -> None:
    assert decision_id("20261130T085500-1f7f3a", 42) == "r7f3a-42"


@pytest.mark.parametrize("other", [{"name": "a.test"}, {"path": "/?token=x"}, {"raw": "a\u202eb"}])
@pytest.mark.parametrize(
    "command",
    [
        {
            "pid": 7,
            "program": "/usr/bin/curl",
            "argv": [b"curl", b"--password", SECRET.encode()],
            "exec": None,
        },
        {"argv": [f"http://user:{SECRET}@a.test/"], "program": "/tmp/a\x1b[2J\u2028b", "also": [1, 2]},
    ],
)
def test_fields_that_were_cleaned_before_are_written_as_if_they_had_not_been(
    command: dict[str, object], other: dict[str, object]
) -> None:
    cleaned = clean_fields(command, REDACTOR)
    for _ in range(2):
        line = encode(command=cleaned, **other)
        assert line == encode(command=command, **other)
        assert SECRET not in shown_text(line)
        assert len(shown_text(line).splitlines()) == 1
