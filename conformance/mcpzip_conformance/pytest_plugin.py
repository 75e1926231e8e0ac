"""pytest plugin: a proxy's conformance as tests, one a check. Installed with the package; nothing is imported
before a test uses it.

    import pytest

    @pytest.mark.mcp_conformance("my-proxy.toml", levels=["must", "should"], expect="known.toml")
    def test_conformance(mcp_check):
        mcp_check()

The rule: a test is one check on one subject. It is skipped or fails as in a run, and is a strict expected
failure if ``expect`` pins it. Paths are relative to the test's file.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mcpzip_conformance.check import Check
    from mcpzip_conformance.subject import Subject
    from mcpzip_conformance.verdict import Verdict

MARKER = "mcp_conformance"
_SIGNATURE = f"{MARKER}(*subjects, groups=(), checks=(), levels=(), expect=None, timeout=None, patience=None)"
_MEANING = (
    "what the fixture mcp_check judges: shipped subjects or .toml files, all checks or those chosen, known "
    "failures pinned in a file, seconds for a check and for an answer."
)
_LINES = 40
"""Messages of a failed check's conversation that are shown, the last ones."""


@dataclass(frozen=True, eq=False)
class Case:
    """One test: a check on a subject. timeout, patience: seconds; None for the runner's own."""

    subject: Subject
    check: Check
    timeout: float | None
    patience: float | None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --mcp-timeout and --mcp-patience, which override the marker."""
    group = parser.getgroup("mcp-conformance", "conformance of MCP proxies")
    group.addoption("--mcp-timeout", type=_seconds, metavar="SECONDS", help="for one conformance check")
    group.addoption("--mcp-patience", type=_seconds, metavar="SECONDS", help="for one answer within it")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{_SIGNATURE}: {_MEANING}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each check and subject."""
    if "mcp_check" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        raise pytest.Collector.CollectError(
            f'mcp_check: nothing says what to check; write @pytest.mark.{MARKER}("my-proxy.toml").'
        )
    options = metafunc.config.option
    try:
        told = _MarkerArguments(*marker.args, **marker.kwargs)
    except TypeError as error:
        said = str(error).replace("_MarkerArguments.__init__() ", "it ")
        raise pytest.Collector.CollectError(f"{MARKER}: {said}; write {_SIGNATURE}.") from error
    cases = list(told.cases(metafunc.definition.path.parent, options.mcp_timeout, options.mcp_patience))
    metafunc.parametrize("mcp_check", cases, indirect=True)


@pytest.fixture
def mcp_check(request: pytest.FixtureRequest) -> Callable[[], None]:
    """A function that plays this test's check, and fails, skips or returns by the verdict."""
    case: Case = request.param

    def play() -> None:
        __tracebackhide__ = True
        verdict = _played(case)
        if verdict.status.value == "skipped":
            pytest.skip(_shown(verdict.summary))
        if verdict.wrong:
            pytest.fail(account(case.check, case.subject, verdict), pytrace=False)

    return play


def account(check: Check, subject: Subject, verdict: Verdict) -> str:
    """The text of a failure: the summary, the requirement, the diff, the conversation."""
    parts = [f"{check.id} ({check.level}), {subject.title}", verdict.summary]
    parts += ["", check.requirement, f"source: {check.source}"]
    if verdict.diff:
        parts += ["", *verdict.diff]
    for title, lines in (("directly to the server", verdict.straight), ("through it", verdict.transcript)):
        if lines:
            left = len(lines) - _LINES
            parts += ["", f"{title}:", *([f"… {left} messages before"] if left > 0 else []), *lines[-_LINES:]]
    return _shown("\n".join(parts))


def _shown(text: str) -> str:
    """``text`` with escapes for control characters: it contains text from the subject."""
    from mcpzip_conformance.transcript import printable

    return "\n".join(map(printable, text.split("\n")))


class _MarkerArguments:
    """The arguments of a marker. Raises TypeError for invalid ones."""

    def __init__(
        self,
        *subjects: str | Path,
        groups: Sequence[str] = (),
        checks: Sequence[str] = (),
        levels: Sequence[str] = (),
        expect: str | Path | None = None,
        timeout: float | None = None,
        patience: float | None = None,
    ) -> None:
        if not subjects:
            raise TypeError("it names no subject")
        for name, value in (("groups", groups), ("checks", checks), ("levels", levels)):
            if isinstance(value, str):
                raise TypeError(f"{name} is a string where a list belongs")
        self.subjects, self.groups, self.checks, self.levels = subjects, groups, checks, levels
        self.expect, self.timeout, self.patience = expect, timeout, patience

    def cases(self, folder: Path, timeout: float | None, patience: float | None) -> Iterator[object]:
        """The parameters of the tests. folder: for relative paths; timeout, patience: override those of the
        marker. Raises CollectError."""
        from mcpzip.model.errors import McpzipError
        from mcpzip_conformance.checks import ALL
        from mcpzip_conformance.commands.progress import is_here
        from mcpzip_conformance.known_failures import Expectations, read
        from mcpzip_conformance.selection import select

        try:
            subjects = [subject for name in self.subjects for subject in _subjects(name, folder)]
            checks = select(ALL, groups=self.groups, ids=self.checks, levels=self.levels)
            known = Expectations()
            if self.expect is not None:
                known = read(folder / self.expect, [check.id for check in ALL])
        except McpzipError as error:
            raise pytest.Collector.CollectError(str(error)) from error
        for subject in subjects:
            absent = () if is_here(subject) else (pytest.mark.skip(reason=_shown(subject.not_run)),)
            for check in checks:
                case = Case(subject, check, timeout or self.timeout, patience or self.patience)
                name = check.id if len(subjects) == 1 else f"{subject.id}-{check.id}"
                why = known.why(subject.id, check.id)
                yield pytest.param(case, id=name, marks=(*absent, *((_pinned(why),) if why else ())))


def _pinned(why: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(raises=pytest.fail.Exception, reason=why, strict=True)


def _subjects(name: str | Path, folder: Path) -> tuple[Subject, ...]:
    """The subjects with this ``name``; a path, with or without a variant, is relative to ``folder``."""
    from mcpzip_conformance.installation import required
    from mcpzip_conformance.subject import load_all

    text = str(name)
    found = load_all(folder / text if ".toml" in text else text)
    for subject in found:
        if subject.install is not None and not subject.not_run:
            required(subject.family, subject.install)
    return found


def _played(case: Case) -> Verdict:
    from mcpzip_conformance.client import PATIENCE
    from mcpzip_conformance.runner import TIMEOUT, judge

    if _in_a_loop():
        advice = "mcp_check runs an event loop of its own: write the test with def, not async def."
        pytest.fail(advice, pytrace=False)
    # A loop of our own making leaves alone the one that others may have set for this thread.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(judge(case.subject, case.check, case.timeout or TIMEOUT, case.patience or PATIENCE))


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number of seconds; write one above 0")
    return seconds
