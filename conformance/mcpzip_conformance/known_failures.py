"""Known failures of a subject: a run then fails only for differences from them.

    ["my-proxy"]                # a subject's id; a family's pins hold for each of its variants
    "fidelity.is-error" = "Dropped since 0.9; the fix is in review."

    ["my-proxy:http"]           # one variant
    "resilience.exit-on-eof" = "It listens on."

The rule: a pin is a check's id and why it is known to fail. A pin of a check that was not played has no
effect, so that one file serves a run of one group and a run of all. An error in the file is an
`ExpectationError`, one sentence.
"""

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from mcpzip.model.errors import ConfigError
from mcpzip_conformance.files import written
from mcpzip_conformance.verdict import Report, Status, SubjectReport, Verdict

_HEAD = """\
# Known failures, and why: mcpzip-conformance run --expect {name}
# --write-expect writes it anew. It keeps the reasons that stand here, and no other comments.
"""


class ExpectationError(ConfigError):
    """Pins can't be used. ``file``, ``path``, ``found``, ``remedy``: see `ConfigError`."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """pins: subject or family id -> check id -> why it is known to fail."""

    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def why(self, subject: str, check: str) -> str:
        """Why ``check`` is known to fail on ``subject``; "" if it isn't. A variant's pin has precedence over
        its family's."""
        for key in dict.fromkeys((subject, family_of(subject))):
            if why := self.pins.get(key, {}).get(check):
                return why
        return ""


def family_of(subject: str) -> str:
    """The id of the file of ``subject``."""
    return subject.partition(":")[0]


def read(path: str | Path, known: Collection[str]) -> Expectations:
    """The pins in a TOML file. known: the ids of all checks there are. ExpectationError."""
    file = str(path)
    try:
        data = tomllib.loads(Path(path).read_bytes().decode())
    except OSError as error:
        raise ExpectationError(
            file, "", f"it can't be read ({error.strerror})", "check the path, or make it with --write-expect"
        ) from error
    except ValueError as error:
        raise ExpectationError(file, "", str(error), "correct the syntax") from error
    return Expectations({subject: _table(file, subject, table, known) for subject, table in data.items()})


def apply(report: Report, expectations: Expectations) -> Report:
    """``report`` with the known failures marked."""

    def pinned(subject: SubjectReport) -> SubjectReport:
        verdicts = (
            replace(verdict, pinned=expectations.why(subject.id, verdict.check))
            for verdict in subject.verdicts
        )
        return replace(subject, verdicts=tuple(verdicts))

    return replace(report, subjects=tuple(map(pinned, report.subjects)), expecting=True)


def write(
    report: Report, path: str | Path, known: Collection[str], there: Collection[str] = ()
) -> Expectations:
    """Write every failure of ``report`` to the file ``path``. Returns its pins. there: the ids of the
    subjects that could have been played with them.

    Reasons: those in the file, else the verdict's summary. Pins of checks that pass now are removed; those of
    checks and subjects that weren't played, or broke, stay. Raises ExpectationError if the file exists and
    can't be used, McpzipError if it can't be written.
    """
    before = read(path, known) if Path(path).exists() else Expectations()
    expectations = _brought_up(before, report, there)
    written(Path(path), text(expectations, Path(path).name))
    return expectations


def text(expectations: Expectations, name: str = "FILE") -> str:
    """The TOML text of ``expectations``. name: of the file."""
    parts = [_HEAD.format(name=name)]
    for subject, pins in sorted(expectations.pins.items()):
        lines = [f"{_quoted(check)} = {_quoted(why)}\n" for check, why in sorted(pins.items())]
        parts.append(f"[{_quoted(subject)}]\n" + "".join(lines))
    return "\n".join(parts)


def _table(file: str, subject: str, table: object, known: Collection[str]) -> dict[str, str]:
    path = _key(subject)
    if not isinstance(table, dict):
        remedy = f'put it under the subject it is about, as in ["my-proxy"] and "{subject}" = "why"'
        raise ExpectationError(file, path, f"{_kind(table)} stands here", remedy)
    return {check: _why(file, f"{path}.{_key(check)}", check, why, known) for check, why in table.items()}


def _why(file: str, path: str, check: str, why: object, known: Collection[str]) -> str:
    if isinstance(why, dict):
        inner = next(iter(why), "…")
        remedy = f'write the whole id in quotes, as in "{check}.{inner}" = "why"'
        raise ExpectationError(file, path, "a table stands here", remedy)
    if check not in known:
        near = get_close_matches(check, known, n=1)
        remedy = f"the nearest is {near[0]!r}" if near else "see mcpzip-conformance list"
        raise ExpectationError(file, path, "there is no such check", remedy)
    if not isinstance(why, str):
        raise ExpectationError(file, path, f"{_kind(why)} stands here", "say why it fails, as a string")
    if not why.strip():
        raise ExpectationError(file, path, "it is empty", "say why it fails in a sentence")
    return why


def _kind(value: object) -> str:
    kinds = {bool: "true or false", str: "a string", list: "a list", int: "a number", float: "a number"}
    return kinds.get(type(value), "a date")


def _brought_up(before: Expectations, report: Report, there: Collection[str]) -> Expectations:
    """``before``, updated by ``report``. A pin of a family stays if the check fails on all variants that were
    played; otherwise it is replaced by pins of the variants that fail and of those that weren't played."""
    after = {subject: dict(pins) for subject, pins in before.pins.items()}
    families = {family_of(subject.id) for subject in report.subjects}
    for family in families & after.keys():
        played = [one for one in report.subjects if family_of(one.id) == family]
        for check in list(after[family]):
            if any(_is(verdict, check, Status.PASSED) for one in played for verdict in one.verdicts):
                why = after[family].pop(check)
                for id in set(there) - {one.id for one in played}:
                    if family_of(id) == family:
                        after.setdefault(id, {}).setdefault(check, why)
    for subject in report.subjects:
        for verdict in subject.verdicts:
            if verdict.status is Status.FAILED:
                if not Expectations(after).why(subject.id, verdict.check):
                    why = before.why(subject.id, verdict.check) or _reason(verdict)
                    after.setdefault(subject.id, {})[verdict.check] = why
            elif verdict.status is Status.PASSED:
                after.get(subject.id, {}).pop(verdict.check, None)
    return Expectations({subject: pins for subject, pins in after.items() if pins})


def _is(verdict: Verdict, check: str, status: Status) -> bool:
    return verdict.check == check and verdict.status is status


def _reason(verdict: Verdict) -> str:
    return " ".join(verdict.summary.split()) or "It fails."


def _key(name: str) -> str:
    """``name`` as a TOML key, in quotes unless it can be a bare key."""
    bare = name.replace("-", "").replace("_", "")
    return name if bare.isascii() and bare.isalnum() else f'"{name}"'


def _quoted(text: str) -> str:
    """A TOML string: with JSON's escapes, and with DEL and lone surrogates escaped."""
    whole = text.encode("utf-8", "backslashreplace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
