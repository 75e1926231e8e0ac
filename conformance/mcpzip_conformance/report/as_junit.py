"""The report for continuous integration: JUnit's XML, a suite a subject, a case a check.

The rule: what is pinned as known to fail is skipped with its reason, and passing all the same is a failure.
Every other failed check is a failure, of whatever level: the level is its ``type``. What the machine got
wrong is an error.
"""

import re
import xml.etree.ElementTree as ET

from mcpzip.model import sanitize
from mcpzip_conformance.report.matrix import NOT_RUN, Mark, by_check, mark, names, sentence
from mcpzip_conformance.verdict import Report, Requirement, SubjectReport, Verdict

_UNHEARD = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write (section 2.2), and the carriage return, which its readers change."""


def render(report: Report) -> str:
    """``report`` as an XML document."""
    suites = [_suite(report, subject) for subject in report.subjects]
    root = ET.Element("testsuites", {"name": "MCP proxy conformance", "time": _seconds(report.seconds)})
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def speakable(text: str) -> str:
    """``text`` with the characters that XML can't hold as Python's escapes, and with JSON's those that act on
    whatever shows it.
    """
    return sanitize.json_text(_UNHEARD.sub(lambda one: one[0].encode("unicode_escape").decode(), text))


def _suite(report: Report, subject: SubjectReport) -> ET.Element:
    suite = ET.Element(
        "testsuite", {"name": speakable(names(report)[subject.id]), "id": speakable(subject.id)}
    )
    verdicts = by_check(subject)
    cases = [_case(subject, check, verdicts[check.id]) for check in report.checks if check.id in verdicts]
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(case.find(kind) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", _seconds(subject.seconds))
    suite.set("timestamp", speakable(report.started.removesuffix("Z").removesuffix("+00:00")))
    told = {
        "version": subject.version,
        "homepage": subject.homepage,
        NOT_RUN: subject.not_run,
        "python": report.python,
        "platform": report.platform,
    }
    _properties(suite, told)
    suite.extend(cases)
    return suite


def _case(subject: SubjectReport, check: Requirement, verdict: Verdict) -> ET.Element:
    names = {"classname": f"{subject.id}.{check.group}", "name": check.id}
    case = ET.Element("testcase", {name: speakable(value) for name, value in names.items()})
    case.set("time", _seconds(verdict.seconds))
    _properties(case, {_name(one.name, one.unit): repr(one.value) for one in verdict.measured})
    match mark(verdict):
        case Mark.SKIPPED:
            _result(case, "skipped", verdict.summary)
        case Mark.KNOWN:
            _result(case, "skipped", sentence(verdict))
        case Mark.SURPRISE:
            _result(case, "failure", sentence(verdict), check.level)
        case Mark.FAILED:
            _result(case, "failure", verdict.summary, check.level, _account(check, verdict))
        case Mark.BROKEN:
            _result(case, "error", verdict.summary, "broken", _account(check, verdict))
    return case


def _result(case: ET.Element, kind: str, message: str, type_: str = "", text: str = "") -> None:
    result = ET.SubElement(case, kind, {"message": speakable(message)})
    if type_:
        result.set("type", speakable(type_))
    result.text = speakable(text) or None


def _account(check: Requirement, verdict: Verdict) -> str:
    """What is asked for, and how that was seen to be unmet."""
    parts = (
        ("", (verdict.summary, "", check.requirement, f"source: {check.source}")),
        ("difference", verdict.diff),
        ("straight to the server", verdict.straight),
        ("through the subject", verdict.transcript),
    )
    told = ["\n".join([f"{title}:"] * bool(title) + list(lines)) for title, lines in parts if lines]
    return "\n\n".join(told)


def _properties(element: ET.Element, values: dict[str, str]) -> None:
    held = {name: value for name, value in values.items() if value}
    if held:
        properties = ET.SubElement(element, "properties")
        for name, value in held.items():
            ET.SubElement(properties, "property", {"name": speakable(name), "value": speakable(value)})


def _name(name: str, unit: str) -> str:
    return f"{name} ({unit})" if name else unit


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
