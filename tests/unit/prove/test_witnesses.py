"""What arrived: attack, permitted or stray. When in doubt it is stray, and stray is a leak."""

from __future__ import annotations

from typing import Any

import pytest

from stockade.prove.technique import Witness
from stockade.prove.witnesses import Permitted, find_places, fits, list_seen, sort_seen

WORD = "0123456789ab"
PUBLIC, EVIL, METADATA = "93.184.216.34", "93.184.216.66", "169.254.169.254"
ZONE: dict[str, dict[str, Any]] = {
    "allowed.test": {"a": [PUBLIC]},
    "git.test": {"a": ["93.184.216.46"], "aaaa": ["2606:2800:220:1::46"]},
    "flip.test": {"sequence": [{"a": [PUBLIC]}, {"a": [METADATA]}]},
    "alias.test": {"cname": "git.test"},
    "loop.test": {"cname": "loop.test"},
    "mixed.test": {"a": [PUBLIC, "10.20.0.5", "127.0.0.1"]},
    "*.wild.test": {"a": [EVIL]},
}
PERMITTED = Permitted(WORD, find_places(("git.test",), ZONE, opens_private=False))


def request(
    path: str, host: str = "allowed.test", address: str = PUBLIC, port: int = 80, method: str = "GET"
) -> dict[str, Any]:
    return {
        "what": "request", "address": address, "port": port, "name": host, "method": method,
        "path": path, "text": f"{method} {path} HTTP/1.1",
    }  # fmt: skip


def connection(*requests: dict[str, Any], sni: str | None = None, **more: Any) -> dict[str, Any]:
    plain = {"what": "tcp", "address": PUBLIC, "port": 80, "text": "", "bytes": 5, "sni": sni}
    return {**plain, "name": sni or "", "requests": list(requests), **more}


def heap_of(seen: dict[str, Any], *wanted: Witness, permitted: Permitted = PERMITTED) -> str:
    heaps = sort_seen([seen], wanted, permitted)
    return next(name for name in ("arrived", "stray", "permitted") if getattr(heaps, name))


OWN = f"/?permitted=before-{WORD}"


def test_the_two_permitted_requests_are_permitted() -> None:
    for when in ("before", "after"):
        own = request(f"/?permitted={when}-{WORD}")
        assert heap_of(own) == heap_of(connection(own)) == "permitted"


def test_the_permitted_request_is_no_arrival_of_an_attack_at_the_same_host() -> None:
    assert heap_of(request(OWN), Witness(what="request", name="allowed.test")) == "permitted"
    assert heap_of(request("/secret"), Witness(what="request", name="allowed.test")) == "arrived"


@pytest.mark.parametrize(
    "seen",
    [
        request(OWN, address=METADATA),
        request(OWN, address=EVIL),
        request(OWN, host="evil.test"),
        connection(text=f"bytes with {WORD} among them"),
        connection(request(OWN, host="evil.test"), text=f"GET {OWN}"),
        {"what": "udp", "address": PUBLIC, "port": 9000, "text": WORD, "bytes": 12},
        {"what": "host", "name": "loopback", "bytes": 4, "text": WORD},
        {"what": "state", "name": "file-overwritten"},
        {"what": "command", "text": WORD},
    ],
)
def test_nothing_is_permitted_for_carrying_the_word(seen: dict[str, Any]) -> None:
    assert heap_of(seen) == "stray"


def test_a_permitted_name_counts_at_its_own_addresses_only() -> None:
    assert heap_of(request("/x", host="git.test", address="93.184.216.46")) == "permitted"
    assert heap_of(request("/x", host="git.test:8080", address="93.184.216.46")) == "permitted"
    assert heap_of(request("/x", host="git.test", address=EVIL)) == "stray"
    assert heap_of(request("/x", host="other.test", address="93.184.216.46")) == "stray"


def test_a_server_name_counts_at_its_own_addresses_only() -> None:
    assert heap_of(connection(sni="allowed.test", port=443)) == "permitted"
    assert heap_of(connection(sni="allowed.test", port=443, address=EVIL)) == "stray"
    assert heap_of(connection(sni="evil.test", port=443)) == "stray"


def test_a_connection_is_permitted_only_if_each_of_its_requests_is() -> None:
    good, bad = request("/x"), request("/y", host="evil.test")
    assert heap_of(connection(good)) == "permitted"
    assert heap_of(connection(good, bad)) == "stray"
    assert heap_of(connection()) == "stray"  # bytes that are no request


def test_questions_are_permitted_for_the_listed_names_and_not_below_them() -> None:
    def question(name: str, beside_bytes: int = 0) -> dict[str, Any]:
        said = {"name": name, "type": "A", "server": "9.9.9.9", "text": "", "beside_bytes": beside_bytes}
        return {"what": "question", **said}

    assert heap_of(question("allowed.test")) == heap_of(question("Git.Test.")) == "permitted"
    assert heap_of(question("secret.allowed.test")) == heap_of(question("evil.test")) == "stray"
    # A permitted name is no cover for what else the message holds, nor for bytes that are no question.
    assert heap_of(question("allowed.test", 1)) == heap_of(question("", 12)) == "stray"


def test_packets_are_permitted_to_the_resolver_and_nowhere_else() -> None:
    def packet(protocol: str, address: str, port: int = 53, **more: Any) -> dict[str, Any]:
        return {"what": "packet", "protocol": protocol, "address": address, "port": port, **more}

    assert heap_of(packet("udp", "9.9.9.9")) == "permitted"
    assert heap_of(packet("udp", "8.8.8.8")) == "stray"
    assert heap_of(packet("udp", "9.9.9.9", 123)) == "stray"
    # RFC 792: type 3 is what a kernel answers to a late reply; an echo request is type 8.
    assert heap_of(packet("icmp", "9.9.9.9", 0, type=3)) == "permitted"
    assert heap_of(packet("icmp", "9.9.9.9", 0, type=8)) == "stray"
    assert heap_of(packet("icmp", PUBLIC, 0, type=3)) == "stray"


# --- places --------------------------------------------------------------------------------------


def test_places_are_what_the_zone_answers_for_a_name() -> None:
    assert find_places(("git.test",), ZONE, opens_private=False) == {
        "allowed.test": frozenset({PUBLIC}),
        "git.test": frozenset({"93.184.216.46", "2606:2800:220:1::46"}),
    }


def test_an_alias_leads_on_and_a_ring_ends() -> None:
    places = find_places(("alias.test", "loop.test", "x.wild.test"), ZONE, opens_private=False)
    assert places["alias.test"] == {"93.184.216.46", "2606:2800:220:1::46"}
    assert places["loop.test"] == frozenset()
    assert places["x.wild.test"] == {EVIL}


def test_a_metadata_address_is_never_a_permitted_place_and_a_private_one_if_it_is_opened() -> None:
    for opens_private in (False, True):
        assert find_places(("flip.test",), ZONE, opens_private)["flip.test"] == {PUBLIC}
    assert find_places(("mixed.test",), ZONE, False)["mixed.test"] == {PUBLIC}
    assert find_places(("mixed.test",), ZONE, True)["mixed.test"] == {PUBLIC, "10.20.0.5", "127.0.0.1"}


# --- what counts as arrived -------------------------------------------------------------------------


def arrival(**more: Any) -> dict[str, Any]:
    plain = {"protocol": "tcp", "address": EVIL, "port": 80, "bytes": 3, "first": "abc", "sni": None}
    return {**plain, "requests": [], **more}


def test_a_connection_without_a_byte_is_no_arrival_and_with_one_it_is() -> None:
    assert list_seen([arrival(bytes=0, first="")], [], []) == []
    [seen] = list_seen([arrival(bytes=1, first="a")], [], [])
    assert (seen["what"], seen["address"], seen["bytes"]) == ("tcp", EVIL, 1)


def test_a_syn_is_no_arrival_and_any_other_packet_is() -> None:
    packets = [
        {"protocol": name, "address": EVIL, "port": 0, "bytes": 8} for name in ("tcp", "udp", "icmp", "132")
    ]
    assert [one["protocol"] for one in list_seen([], packets, [])] == ["udp", "icmp", "132"]


def test_requests_stand_by_themselves_and_with_their_connection() -> None:
    noted = {"host": "evil.test", "method": "POST", "path": "/x", "head": "POST /x HTTP/1.1"}
    whole, one = list_seen([arrival(requests=[noted])], [], [])
    assert whole["requests"] == [one]
    assert (one["what"], one["name"], one["path"], one["port"]) == ("request", "evil.test", "/x", 80)


@pytest.mark.parametrize(
    ("witness", "does_fit"),
    [
        (Witness(what="tcp"), True),
        (Witness(what="udp"), False),
        (Witness(what="tcp", address=EVIL, port=80), True),
        (Witness(what="tcp", address=PUBLIC), False),
        (Witness(what="tcp", port=443), False),
        (Witness(what="tcp", text="b"), True),
        (Witness(what="tcp", text="z"), False),
        (Witness(what="tcp", protocol="tcp"), False),
    ],
)
def test_a_witness_sees_what_is_equal_in_all_that_it_names(witness: Witness, does_fit: bool) -> None:
    [seen] = list_seen([arrival()], [], [])
    assert fits(witness, seen) is does_fit


def test_a_body_counts_from_the_byte_after_the_limit() -> None:
    witness = Witness(what="request", more_bytes=1000)
    assert not fits(witness, {**request("/upload"), "body_bytes": 1000})
    assert fits(witness, {**request("/upload"), "body_bytes": 1001})
    assert not fits(witness, request("/upload"))


def test_names_and_paths_may_have_stars() -> None:
    seen = request("/a/b", host="X.Evil.test")
    assert fits(Witness(what="request", name="*.evil.test", path="/a/*"), seen)
    assert not fits(Witness(what="request", name="evil.test"), seen)
    assert not fits(Witness(what="request", path="/b*"), seen)
