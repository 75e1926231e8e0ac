"""The report as JSON: the fields of `mcpzip_conformance.verdict`, with the same names.

The rule: what is written is what the schema says, and what the schema says can be read. Other runners may
write the same form; keys of their own begin with ``x-``.
"""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import get_args, get_origin, get_type_hints

import msgspec

from mcpzip.model.errors import McpzipError
from mcpzip_conformance.check import LEVELS
from mcpzip_conformance.verdict import FORMAT, Measure, Report, Requirement, SubjectReport, Verdict

ID = "urn:mcpzip-conformance:report:1"
UNITS = ("tokens", "ms", "MB", "ratio")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SURROGATES = re.compile("[\ud800-\udfff]")


class ReportError(McpzipError):
    """A file is no report. source: where it was read from; found: what is wrong; remedy: what would do."""

    def __init__(self, source: str, found: str, remedy: str) -> None:
        self.source, self.found, self.remedy = source, found, remedy
        super().__init__(f"{source} is no conformance report: {found}; {remedy}.")


def render(report: Report) -> str:
    """``report`` as JSON text, indented. ValueError for a figure that is no finite number."""
    return _text(msgspec.to_builtins(report), indent=2)


def render_short(report: Report) -> str:
    """``report`` as JSON text on one line, without what is left at its default."""
    return _text(_short(report), separators=(",", ":"))


def read(data: bytes | str, source: str) -> Report:
    """The report that ``data`` holds. source: what to call it in the sentence of a `ReportError`."""
    again = "write it again with `mcpzip-conformance run … --json`"
    try:
        report = msgspec.json.decode(_characters(data), type=Report)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ReportError(source, _sentence(error), again) from error
    if report.format != FORMAT:
        raise ReportError(source, f"its format is {report.format!r}", f"this program reads {FORMAT!r}")
    if slip := next(_slips(report), None):
        raise ReportError(source, slip, again)
    return report


def schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of what `render` writes and `read` reads."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "A report of an MCP proxy conformance run",
        "$ref": "#/$defs/Report",
        "$defs": {made.__name__: _object(made) for made in _TOLD},
    }


def render_schema() -> str:
    """`schema`, as it is published in ``schema.json`` beside this file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


# Writing


def _text(value: object, **style: object) -> str:
    """JSON. A lone surrogate, which no reader has to take, is written as the six characters of its escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, **style)  # type: ignore[arg-type]
    return _SURROGATES.sub(lambda one: f"\\\\u{ord(one[0]):04x}", text)


def _short(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_short(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        held = ((one.name, getattr(value, one.name), one.default) for one in fields(value))
        return {name: _short(one) for name, one, default in held if name == "format" or one != default}
    return value


# Reading


def _characters(data: bytes | str) -> bytes | str:
    """``data`` as UTF-8 or text: a shell may have redirected it as UTF-16, or put a byte order mark first."""
    if isinstance(data, bytes) and data.startswith(_UTF_16):
        data = data.decode("utf-16")
    return data.removeprefix(codecs.BOM_UTF8) if isinstance(data, bytes) else data.removeprefix("\ufeff")


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = str(error).rstrip(".").replace("`", "")
    return text[:1].lower() + text[1:]


def _slips(report: Report) -> Iterator[str]:
    """What the types can't say: levels, units, and names that have to be there once."""
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

_TOLD: dict[Part, tuple[str, dict[str, str]]] = {
    Report: (
        "One run: every check that was played, against every subject.",
        {
            "started": "When the run began: ISO 8601, UTC.",
            "seconds": "How long the run took, in seconds.",
            "python": "The version of Python that the runner ran on.",
            "platform": "The operating system, as Python's sys.platform calls it: linux, darwin, win32.",
            "checks": "The checks that were played, in the order they are shown in. Each id is there once.",
            "subjects": "The proxies, in the order they are shown in. Each id is there once.",
            "expecting": "Whether known failures were pinned, so that whatever differs from them counts.",
            "format": "The name and version of this form.",
        },
    ),
    Requirement: (
        "One check, as a reader needs it.",
        {
            "id": "Its name: the group, a dot, and words with hyphens between.",
            "group": "What it belongs with, such as protocol or fidelity.",
            "level": "How much the requirement weighs.",
            "summary": "The first paragraph of the requirement, on one line.",
            "requirement": "The whole text of the requirement.",
            "source": "Where the requirement is written down: a URL, or a place in the project's docs.",
            "measures": "Whether it measures, and passes with any figure.",
        },
    ),
    SubjectReport: (
        "One proxy, and every verdict on it.",
        {
            "id": "Its name on the command line.",
            "title": "Its name in reports.",
            "about": "What is to be known of it: how it was run, in which of its modes.",
            "verdicts": "One verdict a check, in the order of the checks; none when it was not run.",
            "version": "Its version.",
            "homepage": "Where it lives: a URL.",
            "not_run": "Why there are no verdicts; empty when it was run.",
            "seconds": "How long its checks took, in seconds.",
        },
    ),
    Verdict: (
        "What came of one check on one subject.",
        {
            "check": "The id of the check, which is among the report's checks.",
            "group": "The check's group.",
            "level": "The check's level.",
            "status": (
                "passed: the requirement is met. failed: it is not. skipped: the subject declares that it "
                "lacks what the check needs. broken: the runner or the machine failed, and nothing is known "
                "of the subject."
            ),
            "seconds": "How long it took, in seconds.",
            "summary": "Why it isn't passed: one sentence.",
            "diff": "Lines of a unified diff: straight to the server against through the subject.",
            "straight": "What was said straight to the server, one message a line.",
            "transcript": "What client and subject said to each other, one message a line.",
            "measured": "The figures it measured.",
            "pinned": "Why it is known to fail; empty when it isn't.",
        },
    ),
    Measure: (
        "A figure.",
        {
            "name": "What was measured.",
            "value": "How much it was.",
            "unit": "What it was measured in.",
        },
    ),
}
"""What every object and every field of it is."""

_ONE_OF = {"level": LEVELS, "unit": UNITS, "format": (FORMAT,)}
_AT_LEAST_0 = {"seconds"}
_NOT_EMPTY = {"id", "check", "group"}
_SCALARS: dict[object, str] = {str: "string", float: "number", bool: "boolean"}


def _object(made: Part) -> dict[str, object]:
    description, told = _TOLD[made]
    kinds = get_type_hints(made)
    properties = {one.name: _property(one.name, kinds[one.name], told[one.name]) for one in fields(made)}
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": [one.name for one in fields(made) if one.default is MISSING or one.name == "format"],
        "patternProperties": {"^x-": {"description": "Another runner's own; whoever reads may ignore it."}},
        "additionalProperties": False,
    }


def _property(name: str, kind: object, description: str) -> dict[str, object]:
    said: dict[str, object] = {"description": description, **_kind(kind)}
    if name in _ONE_OF:
        said["enum"] = list(_ONE_OF[name])
    if name in _AT_LEAST_0:
        said["minimum"] = 0
    if name in _NOT_EMPTY:
        said["minLength"] = 1
    return said


def _kind(kind: object) -> dict[str, object]:
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _kind(get_args(kind)[0])}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [one.value for one in kind]}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    assert isinstance(kind, type)
    return {"$ref": f"#/$defs/{kind.__name__}"}
