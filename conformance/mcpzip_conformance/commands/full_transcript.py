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
class PlayedCheck:
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


async def play_with_control(subject: Subject, check: Check, limits: Limits) -> PlayedCheck:
    """Play ``check`` against ``subject``. If the check itself has no direct side, it is also played without a
    proxy, if that is possible."""
    played = await play_recorded(subject, check, limits)
    if played.straight or not played.through:
        return played
    for name in ("direct-http", "direct") if subject.start.url else ("direct", "direct-http"):
        control = Subject.load(name)
        if control.id != subject.id and not_applicable(control, check) is None:
            plain = await play_recorded(control, check, limits)
            return dataclasses.replace(played, straight=plain.through, control=True)
    return played


async def play_recorded(subject: Subject, check: Check, limits: Limits) -> PlayedCheck:
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
    return PlayedCheck(subject, check, verdict, straight, through, servers)
