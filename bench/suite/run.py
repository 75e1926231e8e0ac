"""Plays a plan within its time.

The rule: a turn that fails is said as a sentence, and its subject gets no more turns of that probe; a turn
for which the time is too short is left out; a file of an earlier turn is used only where the probe says so.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.client import RefusedError
from bench.suite.figures import GROWING, SERVERS, SPREAD, STEPS, Figure
from bench.suite.place import Place
from bench.suite.plan import turns
from bench.suite.probes import Probe, catalog, prime
from bench.suite.subjects import ALONE, MCPZIP, RUNNING, Subject

_SLOW = 15.0
"""Seconds of a turn after which growth is not measured further."""


@dataclass
class Run:
    """The values so far. seconds: the time that all turns have; python: the upstreams' interpreter."""

    python: str
    seconds: float
    values: dict[tuple[Probe, Subject, str], list[float]] = field(default_factory=dict)
    why: dict[tuple[Probe, Subject], str] = field(default_factory=dict)
    took: dict[tuple[Probe, Subject], float] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)

    def play(self, plan: Iterable[tuple[int, Probe, Subject]]) -> None:
        """All turns of the plan, in its order."""
        with tempfile.TemporaryDirectory(prefix="mcpzip-bench-") as name:
            for number, (_, probe, subject) in enumerate(plan):
                if (probe, subject) not in self.why:
                    self._turn(Path(name), number, probe, subject)
        _show("")

    def _turn(self, folder: Path, number: int, probe: Probe, subject: Subject) -> None:
        spent = time.monotonic() - self.begun
        if spent + self.took.get((probe, subject), probe.seconds) > self.seconds:
            return
        _show(f"{spent:4.0f} s  {probe.group}, {probe.setup.tools:,} tools: {subject.key}")
        begun = time.monotonic()
        kept = folder / f"{subject.key}-{'-'.join(probe.notes)}"
        home = kept if probe.primed else folder / str(number)
        place = Place(home, subject, probe.setup, self.python, probe.patience)
        try:
            if probe.primed and not (kept / "primed").exists():
                prime(place)
                (kept / "primed").touch()
                begun = time.monotonic()
            probe.play(place, lambda quantity, value: self._note(probe, subject, quantity, value))
        except (RefusedError, OSError, ValueError, SystemExit) as error:
            # It refused, has ended, said something that isn't JSON, or its daemon stayed.
            self.why[probe, subject] = _sentence(str(error))
        finally:
            if not probe.primed:
                shutil.rmtree(home, ignore_errors=True)
        self.took[probe, subject] = time.monotonic() - begun

    def _note(self, probe: Probe, subject: Subject, quantity: str, value: float) -> None:
        self.values.setdefault((probe, subject, quantity), []).append(value)

    def figures(self, probes: Sequence[Probe], subjects: Sequence[Subject]) -> list[Figure]:
        """What was measured, and why what wasn't."""
        found = []
        for probe in probes:
            for subject in subjects:
                why = self.why.get((probe, subject), "Not measured: the time was up.")
                for quantity in probe.wanted(subject):
                    values = tuple(self.values.get((probe, subject, quantity), ()))
                    size = probe.setup.tools, probe.setup.servers
                    found.append(Figure(quantity, subject.key, *size, values, "" if values else why))
        return found


def measure(
    probes: Sequence[Probe], subjects: Sequence[Subject], python: str, seconds: float
) -> list[Figure]:
    """The probes in rounds."""
    run = Run(python, seconds)
    run.play(turns(probes, subjects))
    return run.figures(probes, subjects)


def grow(subjects: Sequence[Subject], python: str, seconds: float, done: Iterable[Figure]) -> list[Figure]:
    """`GROWING` at every number of upstreams and of tools; what is ``done`` is not measured again.

    A subject that failed or took too long is not measured with more. Of mcpzip only the way without the
    daemon is.
    """
    sizes = {(one.tools, one.servers) for one in done if one.quantity in GROWING and one.values}
    run = Run(python, seconds)
    chosen = [one for one in subjects if one.finds and one.key not in (RUNNING, MCPZIP)]
    found: list[Figure] = []
    for along in ("upstreams", "tools"):
        ended: dict[Subject, str] = {}
        for tools, servers in STEPS[along].values():
            if (tools, servers) in sizes:
                continue
            rounds = 2 if tools <= SPREAD and servers <= SERVERS else 1
            probe = catalog(tools, servers, rounds=rounds, seconds=tools / 1000)
            run.why |= {(probe, subject): why for subject, why in ended.items()}
            run.play(turns([probe], chosen))
            for subject in chosen:
                if subject not in ended and (why := _why_no_more(run, probe, subject)):
                    ended[subject] = f"Not measured: with {tools:,} tools on {servers} upstreams {why}"
            found += run.figures([probe], chosen)
    return [one for one in found if one.quantity in GROWING]


def _why_no_more(run: Run, probe: Probe, subject: Subject) -> str:
    """Why ``subject`` is not measured with more than in ``probe``; "" if it is."""
    if said := run.why.get((probe, subject)):
        return f"{said[:1].lower()}{said[1:]}"
    took = run.took.get((probe, subject), 0.0)
    # The one that the plots are about may take its time.
    return f"a turn took {took:.0f} s." if took > _SLOW and subject.key != ALONE else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:200]}."


def _show(progress: str) -> None:
    print(f"\r{progress:70}", end="", file=sys.stderr, flush=True)
