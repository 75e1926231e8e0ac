"""Plays checks against a faulty proxy.

The rule: a faulty proxy must fail the check of its fault, and of the others of level must only those that the
fault's row names.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcpzip_conformance.check import MAY, MUST, Check
from mcpzip_conformance.checks import ALL
from mcpzip_conformance.client import PATIENCE
from mcpzip_conformance.mutants.faults import FAULTS
from mcpzip_conformance.runner import TIMEOUT, judge
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.verdict import Status, Verdict

HERE = Path(__file__).parent
MODES = ("names", "meta", "code", "names-http", "meta-http", "code-http", "names-remote", "names-gateway")
BEYOND = {
    "search.paraphrase": "It ranks by the words of a query, and knows no others for them.",
    **{
        check.id: "It holds nothing back."
        for check in ALL
        if check.group == "poisoning" and check.level == MAY
    },
}
"""The checks that the relay fails without a fault, and why."""
_MORE = 3.0
_CHECKS = {check.id: check for check in ALL}


def right(mode: str) -> Subject:
    """The relay without a fault. mode: a variant of the subject ``relay``."""
    return Subject.load(f"relay:{mode}")


def mutant(fault: str) -> Subject:
    """The relay with this fault. Raises KeyError if the fault is unknown."""
    subject = right(FAULTS[fault].mode)
    python, _, _, *words = subject.start.command
    command = (python, "-m", "mcpzip_conformance.mutants.wrong", fault, *words)
    start = msgspec.structs.replace(subject.start, command=command)
    return msgspec.structs.replace(subject, id=fault, title=fault, start=start)


async def hunt(fault: str, patience: float = PATIENCE) -> Verdict:
    """The verdict of the check of ``fault``."""
    return await judge(mutant(fault), _CHECKS[FAULTS[fault].check], patience=patience)


@dataclass(frozen=True, slots=True)
class Hunted:
    """The result for one fault. named: the verdict of its check; unrelated: failures that its row doesn't
    name; spared: checks that its row names and that pass."""

    fault: str
    named: Verdict
    unrelated: tuple[Verdict, ...] = ()
    spared: tuple[str, ...] = ()

    @property
    def as_it_should_be(self) -> bool:
        """Whether the result matches its row."""
        return self.named.status is Status.FAILED and not self.unrelated and not self.spared


async def hunt_all(
    faults: Sequence[str],
    *,
    thorough: bool,
    jobs: int,
    patience: float,
    done: Callable[[Hunted], None] = lambda hunted: None,
) -> list[Hunted]:
    """Plays each fault against its check; thorough: against every check of level must. jobs: checks at a
    time.

    Unexpected results are played again with more patience, because answers can be late on a busy machine.
    """
    turn = asyncio.Semaphore(jobs)

    async def one(fault: str, check: Check, expected: bool) -> Verdict:
        async with turn:
            verdict = await judge(mutant(fault), check, TIMEOUT, patience)
            if (verdict.status is Status.FAILED) is expected and verdict.status is not Status.BROKEN:
                return verdict
            return await judge(mutant(fault), check, TIMEOUT, patience * _MORE)

    async def each(fault: str) -> Hunted:
        row = FAULTS[fault]
        checks = [_CHECKS[row.check], *(_others(row.check) if thorough else ())]
        expected = {row.check, *row.also}
        verdicts = await asyncio.gather(*(one(fault, check, check.id in expected) for check in checks))
        named, *others = verdicts
        failed = {it.check for it in others if it.status in (Status.FAILED, Status.BROKEN)}
        unrelated = tuple(it for it in others if it.check in failed - set(row.also))
        hunted = Hunted(fault, named, unrelated, tuple(sorted(set(row.also) - failed)) if thorough else ())
        done(hunted)
        return hunted

    return list(await asyncio.gather(*map(each, faults)))


def _others(named: str) -> list[Check]:
    return [check for check in ALL if check.level == MUST and check.id != named]
