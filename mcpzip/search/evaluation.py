"""Measures how well a catalog's tools are found: requests made from the tools, and the metrics (pure).

A request made from a tool is easier than a person's: it has words of the tool. So its figures compare
settings and catalogs, and show the tools that even an easy request doesn't find; they are no measure of how
search does with people. Requests are the same for the same catalog.

Recall@k and the mean reciprocal rank: Manning, Raghavan and Schütze, Introduction to Information Retrieval,
2008, chapter 8.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from mcpzip.model.entry import Entry
from mcpzip.search.tokenizer import content_words, words
from mcpzip.search.verbs import FAMILIES, families

DEPTH = 50
"""Tools of a result that are looked at. A tool after them counts as not found."""
_SENTENCE = re.compile(r"[.!?\n](?:\s|$)")
_WORDS = 14
"""Words of a description that a request has at most."""
_LEAST = 2
"""Words of content that a request has at least, and that a description needs to say anything."""
_TYPO = 5
"""Letters that a word has at least, to be misspelled."""


@dataclass(frozen=True, slots=True)
class Request:
    """A query, and the names of the tools of which any is right. kind: how it was made; "yours" for a
    user's.
    """

    query: str
    tools: frozenset[str]
    kind: str


KINDS: Mapping[str, str] = {
    "name": "the words of the tool's name",
    "misspelled": "… with two letters exchanged",
    "other verb": "… with a verb of like meaning",
    "description": "its description, without the words of its name",
}
"""The kinds of requests that `requests_of` makes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search for ``request`` found. rank: of the first right tool, from 1; None if it is not among the
    first `DEPTH`. above: the names of the tools before it, best first.
    """

    request: Request
    rank: int | None
    above: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of ``count`` requests; all from 0 to 1. first: recall@1; recall: recall@k; mrr: the mean
    reciprocal rank, with 0 for a tool that was not found.
    """

    count: int
    first: float
    recall: float
    mrr: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], k: int) -> "Measures":
        """The metrics of ``outcomes``, of which there is at least one."""
        ranks = [outcome.rank for outcome in outcomes]
        count = len(ranks)
        return cls(
            count,
            sum(rank == 1 for rank in ranks) / count,
            sum(rank is not None and rank <= k for rank in ranks) / count,
            sum(1 / rank for rank in ranks if rank is not None) / count,
        )


def outcome(request: Request, found: Iterable[tuple[str, ...]]) -> Outcome:
    """The outcome of ``request``. found: the names of each result, best first; a tool that several servers
    have is one result with several names.
    """
    above: list[str] = []
    for rank, names in enumerate(found, 1):
        if request.tools.intersection(names):
            return Outcome(request, rank, tuple(above))
        above.append(names[0])
    return Outcome(request, None, tuple(above))


# ---- requests


def requests_of(entries: Sequence[Entry], at_most: int) -> list[Request]:
    """Requests for a sample of ``entries`` such that there are about ``at_most``: of each tool one of each
    kind that can be made of it. A tool is in the sample by a hash of its name.
    """
    chosen = sorted(entries, key=lambda entry: (crc32(entry.name.encode()), entry.name))
    made: list[Request] = []
    for entry in chosen:
        if len(made) >= at_most:
            break
        made += _requests(entry)
    return made


def _requests(entry: Entry) -> Iterator[Request]:
    right = frozenset({entry.name})
    name = [word for word, _ in words(entry.tool)]
    if name:
        text = " ".join(name)
        yield Request(text, right, "name")
        if misspelled := _misspelled(name):
            yield Request(misspelled, right, "misspelled")
        if other := _other_verb(name, text):
            yield Request(other, right, "other verb")
    sentence = _SENTENCE.split(entry.description.strip(), maxsplit=1)[0]
    terms = {term for _, term in words(f"{entry.tool} {entry.server}")}
    rest = [pair for pair in words(sentence) if pair[1] not in terms][:_WORDS]
    if len(content_words(rest)) >= _LEAST:
        yield Request(" ".join(word for word, _ in rest), right, "description")


def _misspelled(name: Sequence[str]) -> str:
    """``name`` with two different letters inside its longest word exchanged; "" if that can't be done."""
    longest = max(name, key=len)
    middle = len(longest) // 2
    for place in (*range(middle, len(longest) - 1), *range(1, middle)):
        one, other = longest[place], longest[place + 1]
        if len(longest) >= _TYPO and one != other:
            wrong = longest[:place] + other + one + longest[place + 2 :]
            return " ".join(wrong if word == longest else word for word in name)
    return ""


def _other_verb(name: Sequence[str], seed: str) -> str:
    """``name`` with its first verb replaced by another of the same family; "" if there is none."""
    for position, (word, term) in enumerate(words(" ".join(name))):
        if bits := families(term):
            alike = [verb for verb in _all_verbs() if verb != word and _families_of(verb) & bits]
            if not alike or position >= len(name):
                return ""
            chosen = alike[crc32(seed.encode()) % len(alike)]
            return " ".join((*name[:position], chosen, *name[position + 1 :]))
    return ""


def _all_verbs() -> list[str]:
    return sorted({verb for verbs in FAMILIES.values() for verb in verbs.split()})


def _families_of(verb: str) -> int:
    return next((families(term) for _, term in words(verb)), 0)


# ---- what is wrong with a catalog


def says_little(entry: Entry) -> bool:
    """Whether the description has fewer than two words of content beside those of the tool's name."""
    terms = {term for _, term in words(entry.tool)}
    rest = [pair for pair in words(entry.description) if pair[1] not in terms]
    return len(rest) < _LEAST or len(content_words(rest)) < _LEAST


def alike(entries: Iterable[Entry]) -> list[tuple[Entry, ...]]:
    """The tools that search can't tell apart, by server: of one name and one description."""
    groups: dict[tuple[tuple[str, ...], str], list[Entry]] = defaultdict(list)
    for entry in entries:
        key = (tuple(term for _, term in words(entry.tool)), " ".join(entry.description.split()))
        groups[key].append(entry)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def missing_words(request: Request, entry: Entry) -> tuple[str, ...]:
    """The words of content of the request that neither the name nor the description of ``entry`` has."""
    known = {term for _, term in words(f"{entry.server} {entry.tool} {entry.title} {entry.description}")}
    pairs = content_words(words(request.query))
    return tuple(dict.fromkeys(word for word, term in pairs if term not in known))


def by_kind(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """``outcomes`` by the kind of their request, in the order of `KINDS`."""
    return _grouped(outcomes, lambda each: each.request.kind)


def by_server(outcomes: Iterable[Outcome], server_of: Mapping[str, str]) -> dict[str, list[Outcome]]:
    """``outcomes`` by the server of the first of the right tools. server_of: by the name of a tool."""
    return _grouped(outcomes, lambda each: server_of[min(each.request.tools)])


def _grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        groups[key(each)].append(each)
    order = list(KINDS)
    return dict(
        sorted(groups.items(), key=lambda item: (order.index(item[0]) if item[0] in order else 99, item[0]))
    )
