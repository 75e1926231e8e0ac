"""The watchdog: how long one turn of mcpzip's event loop may take, whatever a server sends.

The rule: no callback takes more than `LONGEST` of processor time. Time on the clock is not judged: that says
more of the machine than of the code. A busy machine makes processor time longer, too, if less so: a test
fails at `SLOWEST` times as much, and what was longest is told at the end of the run.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mcpzip_fakes.launch import FakeServer

LONGEST = 0.05
"""Seconds of processor time that a turn may take (docs/security.md)."""
SLOWEST = 2.5
"""How many times as long a processor may take that is shared with others."""
_WATCHDOG = Path(__file__).resolve().with_name("watchdog")
_NOTES = "MCPZIP_TEST_TURNS"
"""What `sitecustomize` in that folder looks for."""
SUMMARY = "MCPZIP_TEST_LONGEST_TURNS"
"""Names the file of the longest turns of all tests, which is told at their end (tests/conftest.py)."""


@dataclass(frozen=True, order=True)
class Turn:
    """One callback. seconds: of processor time."""

    seconds: float
    callback: str


def watched(environment: dict[str, str], notes: Path) -> dict[str, str]:
    """``environment`` of a process whose turns are to be noted in ``notes``."""
    path = os.pathsep.join([str(_WATCHDOG), environment["PYTHONPATH"]])
    return {**environment, "PYTHONPATH": path, _NOTES: str(notes)}


def noted(notes: Path) -> list[Turn]:
    """The turns in ``notes``, the longest first."""
    if not notes.exists():
        return []
    lines = [line.partition(" ") for line in notes.read_text("utf-8", "replace").splitlines()]
    return sorted((Turn(float(seconds), callback) for seconds, _, callback in lines), reverse=True)


@contextmanager
def short_turns(notes: Path, *fakes: FakeServer) -> Iterator[None]:
    """What is noted in ``notes`` meanwhile is no longer than it may be, if one of ``fakes`` plays a fault."""
    yield
    if any(fake.scenario.faults for fake in fakes):
        turns = noted(notes)
        _keep(turns[:1])
        long = [turn for turn in turns if turn.seconds > SLOWEST * LONGEST]
        assert long == [], f"the event loop stood still: {long}"


def _keep(turns: list[Turn]) -> None:
    if SUMMARY in os.environ:
        with open(os.environ[SUMMARY], "a", encoding="utf-8") as summary:
            test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
            summary.writelines(f"{turn.seconds:.3f} {turn.callback} ({test})\n" for turn in turns)
