"""The report as JSON: the fields of `mcpzip_conformance.verdict`, with the same names.

The rule: every written report is valid by the schema, and every report that is valid can be read. Other
runners may write the same format; additional keys begin with ``x-``.
"""

import codecs
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import get_args, get_origin, get_type_hints

import msgspec

from mcpzip.model.errors import McpzipError
from mcpzip_conformance.check import LEVELS
from mcpzip_conformance.report.matrix import SURROGATES
from mcpzip_conformance.verdict import FORMAT, Measure, Report, Requirement, SubjectReport, Verdict

ID = "urn:mcpzip-conformance:report:1"
UNITS = ("tokens", "ms", "MB", "ratio")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class ReportError(McpzipError):
    """The data is not a report. source: the file; found: the mistake; remedy: how to correct it."""

    def __init__(self, source: str, found: str, remedy: str) -> None:
        self.source, self.found, self.remedy = source, found, remedy
        super().__init__(f"{source} is not a conformance report: {found}; {remedy}.")


def render(report: Report) -> str:
    """``report`` as indented JSON text. Raises ValueError if a figure is infinite or not a number."""
    return _text(msgspec.to_builtins(report), indent=2)


def render_short(report: Report) -> str:
    """``report`` as JSON text on one line, without fields that have their default values."""
    return _text(_short(report), separators=(",", ":"))


def read(data: bytes | str, source: str) -> Report:
    """The report in ``data``. source: the file, for errors. Raises ReportError."""
    again = "write it again with `mcpzip-conformance run … --json`"
    try:
        report = msgspec.json.decode(_characters(data), type=Report)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReportError(source, _sentence(error), again) from error
    if report.format != FORMAT:
        raise ReportError(source, f"its format is {report.format!r}", f"this program reads {FORMAT!r}")
    if problem := next(_problems(report), None):
        raise ReportError(source, problem, again)
    return report


def schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of the format that `render` writes and `read` reads."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "A report of an MCP proxy conformance run",
        "$ref": "#/$defs/Report",
        "$defs": {kind.__name__: _object(kind) for kind in _DESCRIPTIONS},
    }


def render_schema() -> str:
    """`schema` as JSON text: the content of ``schema.json`` beside this file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


# Writing


def _text(value: object, **style: object) -> str:
    """JSON text. Lone surrogates, which parsers may reject, become six characters: the text of their
    escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, **style)  # type: ignore[arg-type]
    return SURROGATES.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)


def _short(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_short(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        members = ((item.name, getattr(value, item.name), item.default) for item in fields(value))
        return {name: _short(item) for name, item, default in members if name == "format" or item != default}
    return value


# Reading


def _characters(data: bytes | str) -> bytes | str:
    """``data`` without a byte order mark, decoded if it is UTF-16: some shells write files in this way."""
    if isinstance(data, bytes) and data.startswith(_UTF_16):
        data = data.decode("utf-16")
    return data.removeprefix(codecs.BOM_UTF8) if isinstance(data, bytes) else data.removeprefix("\ufeff")


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = str(error).rstrip(".").replace("`", "")
    return text[:1].lower() + text[1:]


def _problems(report: Report) -> Iterator[str]:
    """Mistakes that the types allow: unknown levels and units, repeated and unknown ids."""
    checks = {check.id for check in report.checks}
    yield from _twice("check", (check.id for check in report.checks))
    yield from _twice("subject", (subject.id for subject in report.subjects))
    for check in report.checks:
        yield from _level(check.id, check.level)
    for subject in report.subjects:
        yield from _twice(f"verdict of {subject.id!r} on", (verdict.check for verdict in subject.verdicts))
        for verdict in subject.verdicts:
            if verdict.check not in checks:
                yield f"{subject.id!r} has a verdict on {verdict.check!r}, which is not among its checks"
            yield from _level(verdict.check, verdict.level)
            for measure in verdict.measured:
                if measure.unit not in UNITS:
                    yield f"{verdict.check!r} measures in {measure.unit!r}, not in {', '.join(UNITS)}"


def _twice(kind: str, ids: Iterable[str]) -> Iterable[str]:
    return (f"it has the {kind} {id!r} {count} times" for id, count in Counter(ids).items() if count > 1)


def _level(check: str, level: str) -> Iterable[str]:
    if level not in LEVELS:
        yield f"the level of {check!r} is {level!r}, not {', '.join(LEVELS)}"


# The schema

Part = type[Report] | type[Requirement] | type[SubjectReport] | type[Verdict] | type[Measure]

_DESCRIPTIONS: dict[Part, tuple[str, dict[str, str]]] = {
    Report: (
        "One run: checks that were played against subjects.",
        {
            "started": "When the run began: ISO 8601, UTC.",
            "seconds": "Duration of the run in seconds.",
            "python": "The version of Python that the runner used.",
            "platform": "The operating system as in Python's sys.platform: linux, darwin, win32.",
            "checks": "The checks that were played, in the order of the report. Their ids are unique.",
            "subjects": "The proxies, in the order of the report. Their ids are unique.",
            "expecting": "Whether the run had a list of known failures, from which every difference counts.",
            "format": "The name and version of this format.",
        },
    ),
    Requirement: (
        "One check.",
        {
            "id": "The name of the check: its group, a dot, and words with hyphens between them.",
            "group": "The group of the check, such as protocol or fidelity.",
            "level": "How important the requirement is.",
            "summary": "The first paragraph of the requirement, on one line.",
            "requirement": "The whole text of the requirement.",
            "source": "The source of the requirement: a URL, or a place in the project's docs.",
            "measures": "Whether the check measures, and passes with any figure.",
        },
    ),
    SubjectReport: (
        "One proxy, and the verdicts on it.",
        {
            "id": "The name of the proxy on the command line.",
            "title": "The name of the proxy in reports.",
            "about": "Remarks, such as how the proxy was run, in which of its modes.",
            "verdicts": "One verdict for each check, in the order of the checks; none if it was not run.",
            "version": "The version of the proxy.",
            "homepage": "The URL of the proxy's project.",
            "not_run": "Why there are no verdicts; empty if the proxy was run.",
            "seconds": "Duration of the checks in seconds.",
        },
    ),
    Verdict: (
        "The result of one check on one subject.",
        {
            "check": "The id of the check, which is among the report's checks.",
            "group": "The check's group.",
            "level": "The check's level.",
            "status": (
                "passed: the requirement is met. failed: it is not. skipped: the subject declares that it "
                "lacks a feature that the check needs. broken: the runner or the machine failed, so there is "
                "no result for the subject."
            ),
            "seconds": "Duration of the check in seconds.",
            "summary": "Why the check did not pass: one sentence.",
            "diff": "Lines of a unified diff: directly from the server against through the subject.",
            "straight": "The messages between the client and the server directly, one on each line.",
            "transcript": "The messages between the client and the subject, one on each line.",
            "measured": "The measured figures.",
            "pinned": "Why this is a known failure; empty if it is not.",
        },
    ),
    Measure: (
        "A figure.",
        {
            "name": "What was measured; empty if the check's id is enough.",
            "value": "The number.",
            "unit": "The unit of the number.",
        },
    ),
}
"""The descriptions of every object and its fields."""

_ONE_OF = {"level": LEVELS, "unit": UNITS, "format": (FORMAT,)}
_AT_LEAST_0 = {"seconds"}
_NOT_EMPTY = {"id", "check", "group"}
_SCALARS: dict[object, str] = {str: "string", float: "number", bool: "boolean"}


def _object(kind: Part) -> dict[str, object]:
    description, descriptions = _DESCRIPTIONS[kind]
    kinds = get_type_hints(kind)
    properties = {
        field.name: _property(field.name, kinds[field.name], descriptions[field.name])
        for field in fields(kind)
    }
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [
            field.name for field in fields(kind) if field.default is MISSING or field.name == "format"
        ],
        "patternProperties": {"^x-": {"description": "A key of another runner, which readers may ignore."}},
        "additionalProperties": False,
    }


def _property(name: str, kind: object, description: str) -> dict[str, object]:
    schema: dict[str, object] = {"description": description, **_kind(kind)}
    if name in _ONE_OF:
        schema["enum"] = list(_ONE_OF[name])
    if name in _AT_LEAST_0:
        schema["minimum"] = 0
    if name in _NOT_EMPTY:
        schema["minLength"] = 1
    return schema


def _kind(kind: object) -> dict[str, object]:
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _kind(get_args(kind)[0])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [member.value for member in kind]}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    assert isinstance(kind, type)
    return {"$ref": f"#/$defs/{kind.__name__}"}
