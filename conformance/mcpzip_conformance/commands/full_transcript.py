"""Plays one check and keeps all its messages, not only those of a report."""

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass

from mcpzip_fakes.record import Line

from mcpzip_conformance.check import Check
from mcpzip_conformance.commands.options import Limits
from mcpzip_conformance.runner import judge, not_applicable
from mcpzip_conformance.stage import Stage
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.transcript import Transcript
from mcpzip_conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Seen:
    """One check on one subject. straight, through: the conversations with a server directly, and with the
    subject, in the order they opened; control: ``straight`` is the same check without a proxy, because the
    check compares nothing; servers: the record of each server, by its name."""

    subject: Subject
    check: Check
    verdict: Verdict
    straight: tuple[Transcript, ...]
    through: tuple[Transcript, ...]
    servers: Mapping[str, tuple[Line, ...]]
    control: bool = False


async def explained(subject: Subject, check: Check, limits: Limits) -> Seen:
    """``check`` on ``subject``, with a straight side: its own, or that of the check without a proxy, where it
    can be played so."""
    seen = await watch(subject, check, limits)
    if seen.straight or not seen.through:
        return seen
    for name in ("direct-http", "direct") if subject.start.url else ("direct", "direct-http"):
        control = Subject.load(name)
        if control.id != subject.id and not_applicable(control, check) is None:
            plain = await watch(control, check, limits)
            return dataclasses.replace(seen, straight=plain.through, control=True)
    return seen


async def watch(subject: Subject, check: Check, limits: Limits) -> Seen:
    """Play ``check`` against ``subject`` as a run does."""
    stages: list[Stage] = []
    servers: dict[str, tuple[Line, ...]] = {}

    @functools.wraps(check.play)
    async def play(stage: Stage) -> None:
        stages.append(stage)
        try:
            await check.play(stage)
        finally:  # while their files are there
            servers.update((name, tuple(record.lines())) for name, record in stage.records().items())

    watched = dataclasses.replace(check, play=play)
    verdict = await judge(subject, watched, limits.timeout, limits.patience)
    straight = tuple(transcript for stage in stages for transcript in stage.straights)
    through = tuple(transcript for stage in stages for transcript in stage.transcripts)
    return Seen(subject, check, verdict, straight, through, servers)
