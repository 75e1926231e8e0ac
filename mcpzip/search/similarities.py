"""The cosine similarities of one query with many documents.

The rule: a mapping like any other, but made of two lists, so that the few highest are found without a
dictionary of all of them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import mul

BLOCKS = 4  # times the wanted number: into so many blocks `least_of_best` divides the similarities


class Similarities(Mapping[int, float]):
    """Similarities, −1…1, by document. Immutable."""

    __slots__ = ("_by_document", "_documents", "_highest", "_scale", "_values")

    def __init__(self, documents: Sequence[int], values: Sequence[float], scale: float = 1.0) -> None:
        """documents: distinct. values: the similarity of each, in their order, times ``scale``, which is not
        negative: the similarities themselves are only computed where they are asked for.
        """
        self._documents, self._values, self._scale = documents, values, scale
        self._by_document: dict[int, float] | None = None
        self._highest: list[float] = []

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[int]:
        return iter(self._documents)

    def __getitem__(self, document: int) -> float:
        if isinstance(self._documents, range):
            try:
                return self._values[self._documents.index(document)] * self._scale
            except ValueError:
                raise KeyError(document) from None
        if self._by_document is None:
            self._by_document = self.copy()
        return self._by_document[document]

    def copy(self) -> dict[int, float]:
        """A dictionary of all of them."""
        return dict(zip(self._documents, map(mul, self._values, repeat(self._scale)), strict=False))

    def with_more(self, more: Mapping[int, float]) -> "Similarities":
        """These, and ``more`` of other documents."""
        values = [value * self._scale for value in self._values]
        return Similarities([*self._documents, *more], [*values, *more.values()])

    def of(self, documents: Iterable[int]) -> list[float]:
        """The similarities of ``documents``; 0 for one that has none here."""
        own = self._documents
        if isinstance(own, range) and own.start == 0 and own.step == 1:
            values, count, scale = self._values, len(own), self._scale
            return [values[number] * scale if number < count else 0.0 for number in documents]
        if self._by_document is None:
            self._by_document = self.copy()
        get = self._by_document.get
        return [get(number, 0.0) for number in documents]

    def at_least(self, least: float) -> list[int]:
        """The documents with a similarity of ``least`` or more."""
        documents, least = self._documents, self._unscaled(least)
        return [documents[i] for i, value in enumerate(self._values) if value >= least]

    def many_reach(self, least: float, most: int) -> bool:
        """Whether more than ``most`` documents have a similarity of ``least`` or more, as far as the blocks
        of `least_of_best` tell, which must have been called.
        """
        return len(self._highest) - bisect_left(self._highest, self._unscaled(least)) > most

    def least_of_best(self, count: int) -> float:
        """A number that at least ``count`` similarities reach, near the highest such number; −∞ where there
        are fewer. It is the ``count``-th highest of the highest ones of many blocks.
        """
        values = self._values
        if len(values) < count:
            return float("-inf")
        size = max(len(values) // (BLOCKS * count), 1)
        self._highest = sorted([max(values[i : i + size]) for i in range(0, len(values), size)])
        return self._highest[-count] * self._scale

    def _unscaled(self, similarity: float) -> float:
        if self._scale:
            return similarity / self._scale
        return float("inf") if similarity > 0.0 else float("-inf")  # all similarities are 0
