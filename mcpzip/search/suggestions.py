"""Suggestions for a query without results: the most similar known words and servers.

The rule: suggestions are made only where nothing was found, and never change a ranking; so they may look at
every server.
"""

from collections.abc import Iterable
from itertools import islice

from mcpzip.model.limits import UNKNOWN_WORDS
from mcpzip.search.index import Index
from mcpzip.search.tokenizer import words

MAX_SUGGESTIONS = 5
MIN_SIMILARITY = 0.4  # Dice's coefficient; "calender" and "calendar" have .78, "mail" and "main" .6

_MAX_CANDIDATES = 20  # of each kind for a word
_MAX_WORD = 32  # letters


def nearest_words(index: Index, unknown: Iterable[str]) -> tuple[str, ...]:
    """Up to `MAX_SUGGESTIONS` words of the catalog that are similar to one of ``unknown``, best first."""
    best: dict[str, float] = {}
    for word in islice(unknown, UNKNOWN_WORDS):
        word = word[:_MAX_WORD]
        known = index.vocabulary.nearest(word, 2 if len(word) < 6 else 3)[:_MAX_CANDIDATES]
        known += index.vocabulary.with_prefix(word[:4])[:_MAX_CANDIDATES] if len(word) >= 4 else []
        for candidate in known:
            best[candidate] = max(best.get(candidate, 0.0), _dice(word, candidate))
    order = sorted((-similarity, known) for known, similarity in best.items() if similarity >= MIN_SIMILARITY)
    return tuple(known for _, known in order[:MAX_SUGGESTIONS])


def nearest_servers(index: Index, query_words: Iterable[str]) -> tuple[str, ...]:
    """Up to `MAX_SUGGESTIONS` servers whose name is similar to one of ``query_words``: best first, and of
    equally similar ones those with the most tools.
    """
    query = tuple(query_words)
    sizes: dict[str, int] = {}
    for (server, _), size in index.sizes.items():
        sizes[server] = sizes.get(server, 0) + size
    order: list[tuple[float, int, str]] = []
    for name, size in sizes.items():
        parts = [word for word, _ in words(name)]
        parts.append("".join(parts))
        similarity = max((_dice(word, part) for word in query for part in parts), default=0.0)
        if similarity >= MIN_SIMILARITY:
            order.append((-similarity, -size, name))
    return tuple(name for _, _, name in sorted(order)[:MAX_SUGGESTIONS])


def _dice(left: str, right: str) -> float:
    """Dice's coefficient of the letter bigrams of two words, 0…1; a word's edges count as letters."""
    bigrams, others = _bigrams(left), _bigrams(right)
    return 2 * len(bigrams & others) / (len(bigrams) + len(others))


def _bigrams(word: str) -> set[str]:
    edged = f" {word[:_MAX_WORD]} "
    return {edged[i : i + 2] for i in range(len(edged) - 1)}
