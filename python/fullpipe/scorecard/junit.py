"""A comparison as JUnit XML, which servers of continuous integration show: a suite for each item, a
case for each measure, a suite for the conditions and one for the runs. Must never judge.

The elements are those of the schema that Jenkins' xUnit plugin has (junit-10.xsd).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from fullpipe.scorecard.change_texts import sentence, what_was_tested
from fullpipe.scorecard.changes import Change, Comparison
from fullpipe.scorecard.gate import Judged

#: What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(card: Mapping[str, Any], comparison: Comparison, judged: Judged) -> str:
    """The XML's text. A worsening that counts is a failure, an accepted one and what was not tested
    are skipped, a run that failed is an error."""
    root = ElementTree.Element("testsuites", name=_text(f"fullpipe {comparison.subject}"))
    accepted = dict(judged.accepted)
    for item in card["items"]:
        suite = _suite(root, item["id"])
        for change in (change for change in comparison.changes if change.item == item["id"]):
            case = _case(suite, change.measure)
            _add_change(case, change, judged, accepted.get(change))
        for name, why in comparison.untested.items():
            if name.startswith(f"{item['id']}."):
                case = _case(suite, name.removeprefix(f"{item['id']}."))
                ElementTree.SubElement(case, "skipped", message=_text(f"not tested: {why}"))
        if item["not_run"]:
            case = _case(suite, "run")
            ElementTree.SubElement(case, "skipped", message=_text(f"needs {item['not_run']}"))
    if judged.conditions:
        suite = _suite(root, "fail-if")
        for text in judged.conditions:
            case = _case(suite, text)
            if text in judged.holding:
                ElementTree.SubElement(case, "failure", message=_text(f"holds: {text}"))
    _add_runs(root, card["failures"])
    for suite in root:
        _count(suite)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    note = what_was_tested(comparison).replace("--", "- -")
    return f"<?xml version='1.0' encoding='UTF-8'?>\n<!-- {note} -->\n{text}\n"


def _add_change(
    case: ElementTree.Element, change: Change, judged: Judged, reason: str | None
) -> None:
    if reason is not None:
        ElementTree.SubElement(case, "skipped", message=_text(f"accepted: {reason}"))
    elif change in judged.failing:
        failure = ElementTree.SubElement(case, "failure", message=_text(sentence(change)))
        failure.text = _text(sentence(change))
    ElementTree.SubElement(case, "system-out").text = _text(sentence(change))


def _add_runs(root: ElementTree.Element, failures: Sequence[str]) -> None:
    suite = _suite(root, "runs")
    case = _case(suite, "all runs ended")
    if failures:
        error = ElementTree.SubElement(case, "error", message=_text(failures[0]))
        error.text = _text("\n".join(failures))


def _suite(root: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(root, "testsuite", name=_text(name))


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    classname = f"fullpipe.{suite.get('name')}"
    return ElementTree.SubElement(suite, "testcase", name=_text(name), classname=classname)


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for key, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{kind}"))))


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
