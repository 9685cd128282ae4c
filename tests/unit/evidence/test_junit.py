"""JUnit: counts and elements as readers of it expect, and text that is no markup.

The rules are those of the schema that Jenkins publishes (`junit-10.xsd`) and of windyroad's
`JUnit.xsd`: which attributes a suite and a case must have, and which elements may stand in them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from doubles.made_up_proof import make_circumstances, make_judged, make_proof, make_technique
from stockade.evidence.junit import write_junit
from stockade.prove.trial import Result


def suite_of(data: bytes) -> ElementTree.Element:
    root = ElementTree.fromstring(data)
    assert root.tag == "testsuites"
    (suite,) = root
    return suite


@pytest.fixture
def suite() -> ElementTree.Element:
    return suite_of(write_junit(*make_proof(), make_circumstances(), "host"))


def test_the_suite_counts_what_it_holds(suite: ElementTree.Element) -> None:
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "1", "skipped": "1"}
    assert len(suite.findall("testcase")) == 5


def test_the_suite_has_what_the_schemas_demand(suite: ElementTree.Element) -> None:
    assert set(suite.keys()) == {
        "id", "name", "package", "hostname", "timestamp", "tests", "failures", "errors", "skipped", "time",
    }  # fmt: skip
    assert suite.get("timestamp") == "2026-11-30T10:15:00"  # without a zone, as windyroad's pattern has it
    tags = [element.tag for element in suite]
    assert (tags[0], tags[-2:]) == ("properties", ["system-out", "system-err"])
    assert set(tags[1:-2]) == {"testcase"}
    for case in suite.findall("testcase"):
        assert set(case.keys()) == {"classname", "name", "time"}
        assert {element.tag for element in case} <= {"failure", "error", "skipped"}


@pytest.mark.parametrize(
    ("number", "element"), [(0, None), (1, "failure"), (2, "error"), (3, "skipped"), (4, None)]
)
def test_each_result_has_its_element(suite: ElementTree.Element, number: int, element: str | None) -> None:
    case = suite.findall("testcase")[number]
    assert [child.tag for child in case] == ([element] if element else [])


def test_foreign_text_stays_text(suite: ElementTree.Element) -> None:
    case = suite.findall("testcase")[1]
    assert "<script>alert('<i>')</script>" in str(case.get("name"))
    assert "]]>&amp;" in str(case[0].get("message"))
    assert suite.find(".//script") is None


@pytest.mark.parametrize("character", ["\0", "\x08", "\x0b", "\x1b", "\ud800", "\ufffe", "\uffff"])
def test_what_xml_cannot_hold_is_replaced(character: str) -> None:
    """XML 1.0, production 2 (Char)."""
    judged = [make_judged("a", Result.LEAKED, f"a{character}b\u00e9\U0001f600")]
    suite = suite_of(write_junit([make_technique("a")], judged, make_circumstances(), "host"))
    assert suite.findall("testcase")[0][0].get("message") == "a\ufffdb\u00e9\U0001f600"
