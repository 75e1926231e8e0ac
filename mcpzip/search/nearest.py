"""What to say when nothing was found: the known words and the servers that come closest.

The rule: this is help for a person who got no answer; it never changes a ranking and may be slow (it looks at every server).
"""

from collections.abc import Iterable

from mcpzip.search.index import Index
from mcpzip.search.tokenizer import words

MOST = 5
ALIKE = 0.4  # Dice's coefficient from which two words look alike: "calender" and "calendar" have .78


def nearest_words(index: Index, unknown: Iterable[str]) -> tuple[str, ...]:
    """Up to `MOST` words of the catalog that look like one of ``unknown``, the closest first."""
    found: dict[str, tuple[float, str]] = {}
    for word in unknown:
        mistakes = 2 if len(word) < 6 else 3
        near = index.vocabulary.nearest(word[:32], mistakes)[: 4 * MOST]
        near += index.vocabulary.beginning_with(word[:4])[: 4 * MOST] if len(word) >= 4 else []
        for known in near:
            likeness = _likeness(word, known)
            if likeness >= ALIKE:
                found[known] = min(found.get(known, (1.0, known)), (1 - likeness, known))
    return tuple(known for _, known in sorted(found.values())[:MOST])


def nearest_servers(index: Index, said: Iterable[str]) -> tuple[str, ...]:
    """Up to `MOST` servers, those first whose name looks like a word ``said``, then those with most tools."""
    asked = tuple(said)
    sizes = [0] * len(index.servers)
    for server in index.server:
        sizes[server] += 1
    order = []
    for number, name in enumerate(index.servers):
        spelled = [word for word, _ in words(name)]
        likeness = max((_likeness(word, part) for word in asked for part in (*spelled, "".join(spelled))), default=0.0)
        order.append((-likeness if likeness >= ALIKE else 0.0, -sizes[number], name))
    return tuple(name for _, _, name in sorted(order)[:MOST])


def _likeness(left: str, right: str) -> float:
    """Dice's coefficient of the pairs of letters of two words, 0…1; their ends count as letters."""
    pairs, others = _pairs(left), _pairs(right)
    return 2 * len(pairs & others) / (len(pairs) + len(others))


def _pairs(word: str) -> set[str]:
    edged = f" {word[:64]} "
    return {edged[place : place + 2] for place in range(len(edged) - 1)}
