"""The last searches of each client, to learn which words led to the tool that it called.

The rules: a call teaches the words of the last search that found the tool, and those of earlier ones about
the same thing that led to no call: these count more, because the tool lacks them. Each search teaches a tool
once, and few tools. A search by a tool's name teaches nothing. What clients searched for is kept for `WITHIN`
seconds, in memory only.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable

import msgspec

from mcpzip.search import Results, Searcher
from mcpzip.search.fusion import HIGHEST_SCORE
from mcpzip.search.learned_words import LONGEST_QUERY
from mcpzip.search.searcher import Hit

WITHIN = 600.0
"""Seconds from a search to the call."""
SEARCHES = 4
"""Of a client, that are kept."""
CLIENTS = 256
"""Whose searches are kept; of more, those who have not searched for longest are forgotten."""
TOOLS = 3
"""That one search teaches: who calls many tools after it has asked for a list."""
RELATED = 0.3
"""Least cosine of searches about the same thing: of 119 pairs for one tool 82 % have it, of others 2 %."""


FAILED = 2.0
"""Uses that a word of a search counts that led to no call; a word of the last search counts one."""


class _Search(msgspec.Struct, eq=False):
    """text: the query. led_to: the names of the tools that were called."""

    at: float
    text: str
    results: Results
    led_to: set[str]

    def hit(self, name: str) -> Hit | None:
        """What it found of the tool called ``name``."""
        return next((hit for hit in self.results.hits if name in (hit.entry.name, *hit.also)), None)


class SearchSequences:
    """The last searches, by whom they belong to (`Client.owner`). Belongs to one event loop. clock: monotonic
    seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: OrderedDict[Hashable, deque[_Search]] = OrderedDict()

    def searched(self, owner: Hashable, query: str, results: Results) -> None:
        """``owner`` has searched for ``query``, and was sent ``results``."""
        if len(query) > LONGEST_QUERY:
            return
        searches = self._of.setdefault(owner, deque(maxlen=SEARCHES))
        searches.append(_Search(self._clock(), query, results, set()))
        self._of.move_to_end(owner)
        if len(self._of) > CLIENTS:
            self._of.popitem(last=False)

    def remove(self, owner: Hashable) -> None:
        """``owner`` is gone."""
        self._of.pop(owner, None)

    def called(self, owner: Hashable, name: str, searcher: Searcher) -> dict[str, float]:
        """The terms that led ``owner`` to the tool called ``name``, which was called successfully now, and
        how much each counts. searcher: that was searched.
        """
        since = self._clock() - WITHIN
        searches = [each for each in self._of.get(owner, ()) if each.at >= since]
        while searches and searches[-1].hit(name) is None:
            searches.pop()
        if not searches:
            return {}
        last = searches.pop()
        hit = last.hit(name)
        if hit is None or name in last.led_to or len(last.led_to) >= TOOLS:
            return {}
        last.led_to.add(name)
        terms: dict[str, float] = {}
        if hit.score <= HIGHEST_SCORE:
            terms = dict.fromkeys(searcher.learnable(last.results, last.text, hit.need), 1.0)
        for earlier in reversed(searches):
            if earlier.led_to or not _are_related(earlier, last, searcher):
                break
            earlier.led_to.add(name)
            terms |= dict.fromkeys(searcher.learnable(earlier.results, earlier.text), FAILED)
        return terms


def _are_related(one: _Search, other: _Search, searcher: Searcher) -> bool:
    """Whether both are about the same thing."""
    words = one.results.words[""], other.results.words[""]
    similarity = searcher.similarity(*words)
    return similarity >= RELATED if similarity is not None else not set(words[0]).isdisjoint(words[1])
