"""Which record decided, what arrived, and what is a leak."""

from __future__ import annotations

from typing import Any

import pytest
from live_rows import order, scenario

from stockade.lab.live.findings import (
    compare,
    describe_closing,
    find_deciding,
    find_leaks,
    is_control_told,
    list_arrived,
)
from stockade.lab.live.plan import plan_steps

REQUEST = {"do": "request"}


def attempt(seq: int, entry: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "attempt", "seq": seq, "entry": entry, **fields}


def arrival(**fields: Any) -> dict[str, Any]:
    usual = {"protocol": "tcp", "address": "93.184.216.34", "port": 80, "tls": False, "sni": None, "bytes": 9}
    return {**usual, "requests": [], **fields}


def test_the_last_connection_decides_and_not_the_questions_before_it() -> None:
    records = [attempt(1, "dns"), attempt(2, "transparent"), attempt(3, "transparent"), attempt(4, "socket")]
    found = find_deciding([*records, {"kind": "outcome", "seq": 5}], REQUEST)
    assert found is not None
    assert found["seq"] == 3
    assert find_deciding([attempt(1, "dns")], REQUEST) is None


def test_of_programs_the_one_that_was_called_so_decides_and_not_what_it_starts() -> None:
    step = {"do": "exec", "argv": ["git", "fetch"]}
    records = [
        attempt(1, "exec", argv=["/usr/bin/python3", "fetch"]),
        attempt(2, "exec", argv=["git", "fetch"]),
        attempt(3, "exec", argv=["git", "remote-https"]),
        attempt(4, "exec", argv=["git", "fetch"]),
    ]
    found = find_deciding(records, step)
    assert found is not None
    assert found["seq"] == 2
    assert find_deciding(records[:1], step) is None


@pytest.mark.parametrize(
    ("do", "entry"), [("dns", "dns"), ("unix", "socket"), ("icmp", "socket"), ("udp", "udp")]
)
def test_each_kind_of_attempt_has_its_own_records(do: str, entry: str) -> None:
    records = [attempt(number, name) for number, name in enumerate(("dns", "socket", "udp"))]
    found = find_deciding(records, {"do": do})
    assert found is not None
    assert found["entry"] == entry


RECORD = {"verdict": "deny", "risk": "exfiltration", "control": "default-deny", "class": "unknown"}


@pytest.mark.parametrize("part", ["verdict", "risk", "control", "class"])
def test_each_part_is_compared_by_itself(part: str) -> None:
    assert compare(order(), RECORD) == dict.fromkeys(("verdict", "risk", "control", "class"), True)
    assert compare(order(), {**RECORD, part: "another"})[part] is False


def test_a_control_that_nobody_could_see_is_not_compared() -> None:
    assert is_control_told(order())
    assert is_control_told(order(technique="redirect", came_from="http://shop.test/"))
    assert not is_control_told(
        order(technique="redirect", came_from="https://docs.test/")
    )  # inside the tunnel
    assert not is_control_told(order(technique="redirect"))
    assert not is_control_told(order(technique="shared-address"))
    assert compare(order(technique="redirect"), RECORD)["control"] is None


def test_what_arrived_counts_from_its_first_packet_on() -> None:
    packet = {"protocol": "tcp", "address": "10.0.0.1", "port": 10250, "bytes": 40}
    found = list_arrived([arrival(bytes=0)], [packet], None)
    assert [(one["what"], one["port"]) for one in found] == [("connection", 80), ("packet", 10250)]


def test_a_packet_of_a_connection_is_not_told_twice_and_name_questions_are_not_told() -> None:
    packets = [
        {"protocol": "tcp", "address": "93.184.216.34", "port": 80},
        {"protocol": "tcp", "address": "9.9.9.9", "port": 53},
        {"protocol": "icmp", "address": "9.9.9.9", "port": None, "type": 3},
    ]
    assert len(list_arrived([arrival()], packets, None)) == 1


def test_the_page_that_an_attempt_came_from_is_not_the_attempt() -> None:
    page, _ = plan_steps(scenario("GET http://10.0.0.1/x", came_from="http://shop.test/go"))
    seen = {"method": "GET", "path": "/go", "host": "shop.test"}
    assert list_arrived([arrival(requests=[seen])], [], page) == []
    for other in ({**seen, "path": "/x"}, {**seen, "host": "else.test"}):
        assert list_arrived([arrival(requests=[seen, other])], [], page)
    assert list_arrived([arrival(requests=[])], [], page)


def test_what_arrives_of_a_refused_attempt_is_a_leak_and_of_a_permitted_one_is_none() -> None:
    arrived = list_arrived([arrival()], [], None)
    assert find_leaks(True, arrived, [], False) == ["a connection arrived at 93.184.216.34 port 80"]
    assert find_leaks(True, [], [], True) == ["the program ran"]
    assert find_leaks(False, arrived, [], True) == []
    assert find_leaks(False, [], ["evil.test"], False) == ["the name evil.test was asked for outside"]


def test_a_ledger_is_complete_if_its_last_record_says_so() -> None:
    assert describe_closing([{"kind": "run.closed", "complete": True}])["complete"] is True
    assert describe_closing([{"kind": "run.closed", "complete": False}])["complete"] is False
    assert describe_closing([{"kind": "attempt", "complete": True}])["complete"] is False
    assert describe_closing([])["complete"] is False
