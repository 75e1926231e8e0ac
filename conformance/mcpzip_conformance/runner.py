"""Plays checks against subjects.

The rule: every check has a stage of its own, and none affects another: an exception or a timeout becomes its
verdict. Only cancellation of the run is raised, after every stage is cleaned up.
"""

import asyncio
import os
import platform
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from mcpzip_conformance import machine
from mcpzip_conformance.check import Check
from mcpzip_conformance.client import PATIENCE
from mcpzip_conformance.errors import ControlError, Finding, NotPlayableError
from mcpzip_conformance.stage import Stage
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.transcript import Transcript
from mcpzip_conformance.verdict import Report, Requirement, Status, SubjectReport, Verdict

TIMEOUT = 60.0
"""Seconds one check may take."""
_MAX_MESSAGES = 60
"""Messages of a failed check's conversation in a report: the last ones."""

Done = Callable[[Subject, Verdict], None]
WhyNotIdle = Callable[[], Awaitable[str | None]]
"""As `machine.why_not_idle`."""


def default_jobs() -> int:
    """The number of concurrent checks: each has two or three processes, which wait half of the time."""
    processors = os.cpu_count() or 1
    return max(2, processors + processors // 2)


async def run(
    subjects: Sequence[Subject],
    checks: Sequence[Check],
    *,
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
    done: Done = lambda subject, verdict: None,
    why_not_idle: WhyNotIdle = machine.why_not_idle,
) -> Report:
    """Plays every check against every subject, ``jobs`` at a time, and then those that measure, one at a
    time; calls ``done`` with each verdict.

    timeout: seconds for a whole check; patience: seconds for one answer within it; why_not_idle: asked before
    and after a check that takes times, which is skipped, or its times dropped, if it gives a reason.
    """
    started, begun = datetime.now(UTC), time.monotonic()
    turn = asyncio.Semaphore(jobs or default_jobs())
    verdicts: dict[tuple[str, str], Verdict] = {}

    def judged(subject: Subject, check: Check, verdict: Verdict) -> None:
        verdicts[subject.id, check.id] = verdict
        done(subject, verdict)

    async def one(subject: Subject, check: Check) -> None:
        async with turn:
            verdict = await judge(subject, check, timeout, patience)
        judged(subject, check, verdict)

    async with asyncio.TaskGroup() as group:
        for subject in subjects:
            for check in checks:
                if not check.measures:
                    group.create_task(one(subject, check))
    for subject in subjects:
        for check in checks:
            if check.timed and not_applicable(subject, check) is None:
                judged(subject, check, await _timed(subject, check, timeout, patience, why_not_idle))
            elif check.measures:
                judged(subject, check, await judge(subject, check, timeout, patience))
    return Report(
        started=started.isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begun, 3),
        python=platform.python_version(),
        platform=sys.platform,
        checks=tuple(map(requirement, checks)),
        subjects=tuple(
            _subject_report(subject, tuple(verdicts[subject.id, check.id] for check in checks))
            for subject in subjects
        ),
    )


async def _timed(
    subject: Subject, check: Check, timeout: float, patience: float, why_not_idle: WhyNotIdle
) -> Verdict:
    """Play a check that takes times, unless the machine isn't idle before or after it."""
    if (reason := await why_not_idle()) is not None:
        return _verdict(check, Status.SKIPPED, 0.0, reason)
    verdict = await judge(subject, check, timeout, patience)
    if verdict.status is Status.PASSED and (reason := await why_not_idle()) is not None:
        return _verdict(check, Status.SKIPPED, verdict.seconds, reason)
    return verdict


async def judge(
    subject: Subject, check: Check, timeout: float = TIMEOUT, patience: float = PATIENCE
) -> Verdict:
    """Play one check. Raises nothing but cancellation."""
    begun = time.monotonic()
    why_not = not_applicable(subject, check)
    if why_not is not None:
        return _verdict(check, Status.SKIPPED, 0.0, why_not)
    stage, limit = Stage(subject, patience), asyncio.timeout(timeout)
    try:
        async with limit, stage:
            await check.play(stage)
    except Finding as finding:
        status, summary, diff = Status.FAILED, finding.summary, finding.diff
    except NotPlayableError as reason:
        return _verdict(check, Status.SKIPPED, 0.0, str(reason))
    except TimeoutError as error:
        late = f"The check had not ended after {timeout:g} s."
        status, summary = (Status.FAILED, late) if limit.expired() else (Status.BROKEN, str(error))
        diff = ()
    except ControlError as error:
        status, summary, diff = Status.BROKEN, f"The runner could not play it: {error}", ()
    except Exception as error:
        where = "".join(traceback.format_exception(error)).splitlines()
        status, summary, diff = Status.BROKEN, f"The check itself failed: {error!r}", tuple(where)
    else:
        passed = _verdict(check, Status.PASSED, time.monotonic() - begun)
        return replace(passed, measured=tuple(stage.measured))
    failed = _verdict(check, status, time.monotonic() - begun, summary, diff)
    return replace(failed, straight=_lines(stage.straights), transcript=_lines(stage.transcripts))


def requirement(check: Check) -> Requirement:
    """``check`` as part of a report."""
    return Requirement(
        id=check.id,
        group=check.group,
        level=check.level,
        summary=check.summary,
        requirement=check.requirement,
        source=check.source,
        measures=check.measures,
    )


def not_applicable(subject: Subject, check: Check) -> str | None:
    """Why ``check`` is skipped for ``subject``; None if it is played."""
    if check.posix and os.name != "posix":
        return "It can be played on POSIX systems only."
    missing = subject.missing()
    return next((missing[feature] for feature in check.needs if feature in missing), None)


def _lines(transcripts: Sequence[Transcript]) -> tuple[str, ...]:
    return tuple(line for transcript in transcripts for line in transcript.lines())[-_MAX_MESSAGES:]


def _subject_report(subject: Subject, verdicts: tuple[Verdict, ...]) -> SubjectReport:
    return SubjectReport(
        id=subject.id,
        title=subject.title,
        about=subject.about,
        verdicts=verdicts,
        version=subject.version,
        homepage=subject.homepage,
        not_run=subject.not_run,
        seconds=round(sum(verdict.seconds for verdict in verdicts), 3),
    )


def _verdict(
    check: Check,
    status: Status,
    seconds: float,
    summary: str = "",
    diff: tuple[str, ...] = (),
) -> Verdict:
    return Verdict(check.id, check.group, check.level, status, round(seconds, 3), summary, diff)
