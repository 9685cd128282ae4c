"""Pure: the outcome as JUnit XML, for whatever reads test results: one suite, one case a technique.

`leaked` is a failure, `inconclusive` an error, `not-supported` is skipped. The common schema is not
official; this keeps to what the two well-known ones (Jenkins, windyroad) both take.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from stockade.evidence.statement import Circumstances
from stockade.prove.technique import Technique
from stockade.prove.trial import Judged, Result

JUNIT_NAME = "junit.xml"
_TEXT_LIMIT = 4000
# What XML 1.0 lets stand in a document (production 2, Char); everything else is shown as U+FFFD.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {Result.LEAKED: "failure", Result.INCONCLUSIVE: "error"}


def write_junit(
    techniques: Sequence[Technique], judged: Sequence[Judged], circumstances: Circumstances, host: str
) -> bytes:
    """The file's bytes.

    Args:
        host: Name of the machine.
    """
    results = [one.judgement.result for one in judged]
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        id="0",
        name="stockade prove",
        package="stockade.prove",
        hostname=_clean(host) or "localhost",
        timestamp=circumstances.started[:19],
        tests=str(len(judged)),
        failures=str(results.count(Result.LEAKED)),
        errors=str(results.count(Result.INCONCLUSIVE)),
        skipped=str(results.count(Result.NOT_SUPPORTED)),
        time=f"{circumstances.seconds:.3f}",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("command", " ".join(circumstances.command)),
        ("layers_off", " ".join(circumstances.layers_off)),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))
    by_id = {one.id: one for one in techniques}
    for one in judged:
        _add_case(suite, by_id[one.judgement.id], one)
    ElementTree.SubElement(suite, "system-out")
    ElementTree.SubElement(suite, "system-err")
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_case(suite: ElementTree.Element, technique: Technique, one: Judged) -> None:
    trial, result, why = one.trial, one.judgement.result, _clean(one.judgement.why)
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"{technique.group}",
        name=_clean(f"{technique.id}: {technique.title}"),
        time=f"{trial.control.seconds + trial.attempt.seconds:.3f}",
    )
    if result is Result.NOT_SUPPORTED:
        ElementTree.SubElement(case, "skipped", message=why)
    elif result is not Result.BLOCKED:  # a result that nobody thought of is an error, not a pass
        problem = ElementTree.SubElement(case, _ELEMENTS.get(result, "error"), message=why, type=str(result))
        problem.text = _clean("\n".join(map(str, trial.attempt.arrived + trial.attempt.stray))) or why


def _clean(text: str) -> str:
    """Foreign text without what may not stand in XML, and not without end."""
    return _NOT_XML.sub("\ufffd", text)[:_TEXT_LIMIT]
