"""Paths: a permission is read narrowly, a denial generously."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.match import canonical_path, closes_path, parse_path_pattern, permits_path
from stockade.policy.model import PathPattern
from stockade.policy.problems import Rejected


def patterns(*texts: str) -> tuple[PathPattern, ...]:
    return tuple(parse_path_pattern(text) for text in texts)


@pytest.mark.parametrize(
    ("pattern", "path", "is_permitted"),
    [
        ("/v1/messages", "/v1/messages", True),
        ("/v1/messages", "/v1/messages/", False),
        ("/v1/messages", "/v1/message", False),
        ("/v1/messages", "/V1/messages", False),
        ("/", "/", True),
        ("/", "/a", False),
        ("/**", "/", True),
        ("/**", "/a/b", True),
        ("/v1/**", "/v1/", True),
        ("/v1/**", "/v1/a/b", True),
        ("/v1/**", "/v1", False),
        ("/v1/**", "/v10/a", False),
        ("/a/*/c", "/a/b/c", True),
        ("/a/*/c", "/a/b/b/c", False),
        ("/a/*", "/a/", True),
        ("/a/**/c", "/a/c", True),
        ("/a/**/c", "/a/b/b/c", True),
        ("/a/**/c", "/a/b/d", False),
        ("/a/**/c/**", "/a/b/c/d", True),
        ("/a/**/c/**", "/a/b/c", False),
        ("/v2/base/blobs/sha256:*", "/v2/base/blobs/sha256:9f86d081", True),
        ("/v2/base/blobs/sha256:*", "/v2/base/blobs/latest", False),
        ("/v2/base/blobs/sha256:*", "/v2/base/blobs/sha256:a/b", False),
        ("/*.json", "/a.json", True),
        ("/*.json", "/a.json.exe", False),
        ("/~user/a", "/%7Euser/a", True),  # RFC 3986 6.2.2.2: %7E and ~ are one URI
    ],
)
def test_what_a_pattern_permits(pattern: str, path: str, is_permitted: bool) -> None:
    assert permits_path(patterns(pattern), path) is is_permitted


_TWO_READINGS = [
    "/v1/../admin",
    "/v1/./a",
    "/v1/..",
    "/v1/%2e%2e/admin",
    "/v1/%2E%2e/admin",
    "/v1/.%2e/admin",
    "/v1/..;/admin",
    "/v1/..;a=b/admin",
    "/v1/..%2fadmin",
    "/v1%2F..%2Fadmin",
    "/v1/..\\admin",
    "/v1/%5c../admin",
    "/v1/%00",
    "/v1/%0a",
    "/v1/a b",
    "/v1/%zz",
    "/v1/%4",
    "/v1/é",
    "v1/a",
    "",
]


@pytest.mark.parametrize("path", _TWO_READINGS)
def test_a_path_with_two_readings_is_neither_permitted_nor_let_past_a_denial(path: str) -> None:
    assert canonical_path(path) is None
    assert not permits_path(patterns("/v1/**"), path)
    assert closes_path(patterns("/elsewhere"), path)


@pytest.mark.parametrize(
    "path", ["/v1/...", "/v1/.env", "/v1/a..b", "/v1/a.", "/v1/..a", "/v1/%20", "/v1/a;b=c"]
)
def test_dots_inside_a_name_and_plain_escapes_are_ordinary(path: str) -> None:
    assert permits_path(patterns("/v1/**"), path)


@pytest.mark.parametrize(
    "path",
    [
        "/answers",
        "/answers/",
        "/answers/a",
        "/Answers/A",
        "//answers/a",
        "/answers//a",
        "/%61nswers/a",
        "/%2561nswers/a",  # decoded twice by a front end and a framework
        "/answers;v=1/a",
        "/x/../answers/a",
    ],
)
def test_a_denial_holds_for_every_spelling(path: str) -> None:
    assert closes_path(patterns("/answers/**"), path)


@pytest.mark.parametrize("path", ["/", "/answer", "/answersheet", "/b/answers"])
def test_a_denial_leaves_other_paths_open(path: str) -> None:
    assert not closes_path(patterns("/answers/**"), path)


def test_a_path_that_cannot_be_seen_is_closed() -> None:
    assert closes_path(patterns("/answers/**"), None)


def test_no_patterns_speak_of_every_path() -> None:
    assert permits_path((), "/anything/../at/all")
    assert closes_path((), "/anything")


@pytest.mark.parametrize(
    "text",
    [
        "v1",
        "",
        "*",
        "/a?b",
        "/a#b",
        "/a b",
        "/a/../b",
        "/a\\b",
        "/a**",
        "/**a",
        "/%2F",
        "/é",
        "/" + "*/" * 20,
    ],
)
def test_a_pattern_that_could_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        parse_path_pattern(text)
    assert caught.value.code == "path-unclear"


_SEGMENT = st.text("aAb.%2eE5Ff;/*é\\ ", max_size=12)


@given(_SEGMENT.map(lambda text: "/" + text), st.sampled_from(["/a/**", "/a/*", "/a", "/**/b", "/a*b", "/"]))
def test_a_path_that_a_permission_covers_is_one_that_a_denial_of_the_same_closes(
    path: str, pattern: str
) -> None:
    if permits_path(patterns(pattern), path):
        assert closes_path(patterns(pattern), path)


def test_no_path_makes_a_pattern_slow() -> None:
    glob = patterns("/" + "*a" * 15 + "b", "/" + "/".join(["**", "a"] * 7) + "/b")
    started = time.process_time()
    permits_path(glob, "/" + "a" * 8_000)
    permits_path(glob, "/a" * 8_000)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "path",
    [
        "/simple/%c0%ae%c0%ae/x",
        "/simple/%E0%80%AE/x",
        "/simple/%252e%252e/x",
        "/a/%252f",
        "/a/%25252e/x",
        "/a/%255Cx",
    ],
)
def test_a_spelling_that_only_a_careless_reader_decodes_is_not_permitted(path: str) -> None:
    """RFC 3629 section 10: overlong forms; and escapes that are undone twice."""
    assert canonical_path(path) is None
    assert not permits_path((parse_path_pattern("/**"),), path)


@pytest.mark.parametrize(
    "path", ["/a/100%25", "/a/%2520b", "/caf%C3%A9", "/caf%E9", "/%E2%82%AC", "/%F0%9F%90%8D"]
)
def test_ordinary_escapes_stay_permitted(path: str) -> None:
    assert permits_path((parse_path_pattern("/**"),), path)
