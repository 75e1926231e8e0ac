"""The report as JUnit XML for continuous integration: one suite for each subject, one case for each check.

The rule: a known failure is skipped, with its reason, and a failure if it passes. Every other failed check,
of any level, is a failure, with the level as its ``type``. A broken check is an error.
"""

import re
import xml.etree.ElementTree as ET

from mcpzip.model import sanitize
from mcpzip_conformance.report.matrix import NOT_RUN, Mark, by_check, mark, names, sentence
from mcpzip_conformance.verdict import Report, Requirement, SubjectReport, Verdict

_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 doesn't allow (section 2.2), and the carriage return, which parsers change."""


def render(report: Report) -> str:
    """``report`` as an XML document."""
    suites = [_suite(report, subject) for subject in report.subjects]
    root = ET.Element("testsuites", {"name": "MCP proxy conformance", "time": _seconds(report.seconds)})
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def xml_text(text: str) -> str:
    """``text`` with escapes: Python's for characters that XML doesn't allow, JSON's for control characters
    and others that change how text is displayed.
    """
    return sanitize.json_text(_NOT_XML.sub(lambda match: match[0].encode("unicode_escape").decode(), text))


def _suite(report: Report, subject: SubjectReport) -> ET.Element:
    suite = ET.Element("testsuite", {"name": xml_text(names(report)[subject.id]), "id": xml_text(subject.id)})
    verdicts = by_check(subject)
    cases = [_case(subject, check, verdicts[check.id]) for check in report.checks if check.id in verdicts]
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(case.find(kind) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", _seconds(subject.seconds))
    suite.set("timestamp", xml_text(report.started.removesuffix("Z").removesuffix("+00:00")))
    properties = {
        "version": subject.version,
        "homepage": subject.homepage,
        NOT_RUN: subject.not_run,
        "python": report.python,
        "platform": report.platform,
    }
    _properties(suite, properties)
    suite.extend(cases)
    return suite


def _case(subject: SubjectReport, check: Requirement, verdict: Verdict) -> ET.Element:
    names = {"classname": f"{subject.id}.{check.group}", "name": check.id}
    case = ET.Element("testcase", {name: xml_text(value) for name, value in names.items()})
    case.set("time", _seconds(verdict.seconds))
    _properties(
        case, {_name(measure.name, measure.unit): repr(measure.value) for measure in verdict.measured}
    )
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
    result = ET.SubElement(case, kind, {"message": xml_text(message)})
    if type_:
        result.set("type", xml_text(type_))
    result.text = xml_text(text) or None


def _account(check: Requirement, verdict: Verdict) -> str:
    """The requirement, and the evidence that it isn't met."""
    parts = (
        ("", (verdict.summary, "", check.requirement, f"source: {check.source}")),
        ("difference", verdict.diff),
        ("directly to the server", verdict.straight),
        ("through the subject", verdict.transcript),
    )
    sections = ["\n".join([f"{title}:"] * bool(title) + list(lines)) for title, lines in parts if lines]
    return "\n\n".join(sections)


def _properties(element: ET.Element, values: dict[str, str]) -> None:
    present = {name: value for name, value in values.items() if value}
    if present:
        properties = ET.SubElement(element, "properties")
        for name, value in present.items():
            ET.SubElement(properties, "property", {"name": xml_text(name), "value": xml_text(value)})


def _name(name: str, unit: str) -> str:
    return f"{name} ({unit})" if name else unit


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"
