"""Replays the traces of a folder, and collects their figures."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.traces.account import Cost, Sized, cost, direct, sized
from bench.traces.keeping import Candidate, Count, Keeper, Kept
from bench.traces.readers import Format, UnreadableTraceError, files_of, read_file
from bench.traces.trace import Trace

LIMITS = (1_000, 2_000, 5_000, 10_000)
"""Tokens up to which a result is sent whole. Chosen before any trace was replayed."""
LARGE = (1_000, 2_000, 5_000, 10_000, 25_000)
"""Tokens of large results."""
FETCHED = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the kept results that are read whole."""
FETCHED_LIMITS = (2_000, 10_000)
LONG = 200_000
"""Tokens of a conversation that many models can't read."""


@dataclass(frozen=True)
class Played:
    """A trace, direct and kept. kept: by limit. fetched: by limit and share."""

    name: str
    direct: Cost
    kept: dict[int, Cost]
    fetched: dict[tuple[int, float], Cost]


@dataclass
class Corpus:
    """The figures of the traces of a folder. results: their sizes in tokens. own: results of tools that the
    harness itself ran. unread: a sentence for each file that can't be read. estimates: of large results,
    the tokens that mcpzip estimates for one that is counted. missed: by limit, results that
    were read whole because no parts showed what was to be read.
    """

    name: str
    form: str
    played: list[Played] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    own: int = 0
    unread: list[str] = field(default_factory=list)
    estimates: list[float] = field(default_factory=list)
    missed: Counter[int] = field(default_factory=Counter)

    def total(self, chosen: Callable[[Played], Cost]) -> Cost:
        """The sum over all traces."""
        total = Cost()
        for each in self.played:
            total.add(chosen(each))
        return total


class Player:
    """Replays traces. The results that are read whole are every so-manyth of all that are kept."""

    def __init__(self, corpus: Corpus, count: Count, again: bool = False) -> None:
        self._corpus, self._count, self._again = corpus, count, again
        self._keepers = {limit: Keeper(limit, count) for limit in LIMITS}
        self._fetched = {(limit, share): _Every(share) for limit in FETCHED_LIMITS for share in FETCHED}

    def play(self, trace: Trace) -> None:
        """Adds the figures of ``trace``."""
        turns = sized(trace, self._count, self._again)
        if not turns:
            raise UnreadableTraceError("It has no answer of a model.")
        kept = {limit: self._kept(turns, keeper) for limit, keeper in self._keepers.items()}
        fetched = {
            key: self._some_whole(turns, self._keepers[key[0]], every) for key, every in self._fetched.items()
        }
        corpus = self._corpus
        corpus.played.append(Played(trace.name, cost(turns, direct), kept, fetched))
        corpus.results += [each.tokens for turn in turns for each in turn.results]
        corpus.own += sum(each.reading.result.call.is_own for turn in turns for each in turn.results)
        large = [each for turn in turns for each in turn.results if each.exceeds(LIMITS[0])]
        corpus.estimates += [each.estimate / (each.tokens or 1) for each in large]
        corpus.missed = Counter({limit: keeper.missed for limit, keeper in self._keepers.items()})

    def _kept(self, turns: list[Sized], keeper: Keeper) -> Cost:
        return cost(turns, lambda each: keeper.quoted(each) if keeper.keeps(each) else None)

    def _some_whole(self, turns: list[Sized], keeper: Keeper, every: "_Every") -> Cost:
        def treatment(candidate: Candidate) -> Kept | None:
            if not keeper.keeps(candidate):
                return None
            return keeper.whole(candidate) if every.next() else keeper.unread(candidate)

        return cost(turns, treatment)


class _Every:
    """Says yes for the share ``share`` of all times, spread evenly."""

    def __init__(self, share: float) -> None:
        self._share, self._number = share, 0

    def next(self) -> bool:
        self._number += 1
        return math.floor(self._number * self._share) > math.floor((self._number - 1) * self._share)


def play_folder(
    folder: Path, form: Format, count: Count, note: Callable[[str], None], again: bool = False
) -> Corpus:
    """Replays all traces in ``folder``. note: is told of every file that can't be read. again: see
    `bench.traces.quotes.readings`. Raises UnreadableTraceError.
    """
    corpus = Corpus(folder.resolve().name, form.name)
    player = Player(corpus, count, again)
    for trace in _traces(folder, form, corpus, note):
        try:
            player.play(trace)
        except UnreadableTraceError as error:
            _skip(corpus, trace.name, error, note)
    return corpus


def _traces(folder: Path, form: Format, corpus: Corpus, note: Callable[[str], None]) -> Iterator[Trace]:
    for file in files_of(folder, form):
        name = file.relative_to(folder).as_posix()
        try:
            yield from read_file(file, name, form)
        except (UnreadableTraceError, OSError) as error:
            _skip(corpus, name, error, note)


def _skip(corpus: Corpus, name: str, error: Exception, note: Callable[[str], None]) -> None:
    corpus.unread.append(f"{name}: {error}")
    note(f"Skipped {name}: {error}")
