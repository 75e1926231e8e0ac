"""The order of the turns. No I/O.

The rule: in each round every probe is made on every subject, one after another, so that whatever else the
machine does affects all of them alike; the first subject of a round is another one each time.
"""

from collections.abc import Iterator, Sequence

from bench.suite.probes import Probe
from bench.suite.subjects import Subject


def turns(probes: Sequence[Probe], subjects: Sequence[Subject]) -> Iterator[tuple[int, Probe, Subject]]:
    """(round, probe, subject), each subject that a probe takes once in each of its rounds."""
    for number in range(max((probe.rounds for probe in probes), default=0)):
        for probe in probes:
            if number < probe.rounds:
                chosen = [subject for subject in subjects if probe.takes(subject)]
                first = number % max(len(chosen), 1)
                for subject in (*chosen[first:], *chosen[:first]):
                    yield number, probe, subject
