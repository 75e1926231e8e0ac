"""What to say when nothing was found: the known words and the servers that come closest.

The rule: this is help for whoever got no answer. It never changes a ranking, and it may look at every server.
"""

from collections.abc import Iterable
from itertools import islice

from mcpzip.model.limits import UNKNOWN_WORDS
from mcpzip.search.index import Index
from mcpzip.search.tokenizer import words

MOST = 5
ALIKE = (
    0.4  # likeness from which two words look alike: "calender" and "calendar" have .78, "mail" and "main" .6
)

_LOOKED_AT = 20  # candidates of each kind for one word
_LONGEST = 32  # letters


def nearest_words(index: Index, unknown: Iterable[str]) -> tuple[str, ...]:
    """Up to `MOST` words of the catalog that look like one of ``unknown``, the closest first."""
    best: dict[str, float] = {}
    for word in islice(unknown, UNKNOWN_WORDS):
        word = word[:_LONGEST]
        known = index.vocabulary.nearest(word, 2 if len(word) < 6 else 3)[:_LOOKED_AT]
        known += index.vocabulary.beginning_with(word[:4])[:_LOOKED_AT] if len(word) >= 4 else []
        for candidate in known:
            best[candidate] = max(best.get(candidate, 0.0), _likeness(word, candidate))
    order = sorted((-likeness, known) for known, likeness in best.items() if likeness >= ALIKE)
    return tuple(known for _, known in order[:MOST])


def nearest_servers(index: Index, said: Iterable[str]) -> tuple[str, ...]:
    """Up to `MOST` servers: first those whose name looks like a word ``said``, then those with most tools."""
    asked = tuple(said)
    sizes: dict[str, int] = {}
    for (server, _), size in index.sizes.items():
        sizes[server] = sizes.get(server, 0) + size
    order: list[tuple[float, int, str]] = []
    for name, size in sizes.items():
        parts = [word for word, _ in words(name)]
        parts.append("".join(parts))
        likeness = max((_likeness(word, part) for word in asked for part in parts), default=0.0)
        if likeness >= ALIKE:
            order.append((-likeness, -size, name))
    return tuple(name for _, _, name in sorted(order)[:MOST])


def _likeness(left: str, right: str) -> float:
    """Dice's coefficient of the pairs of letters of two words, 0…1; a word's edges count as letters."""
    pairs, others = _pairs(left), _pairs(right)
    return 2 * len(pairs & others) / (len(pairs) + len(others))


def _pairs(word: str) -> set[str]:
    edged = f" {word[:_LONGEST]} "
    return {edged[place : place + 2] for place in range(len(edged) - 1)}
