"""Learned words: those of earlier requests that led to a tool, as a signal for ranking (pure).

The rule: a tool gains by the share of the query's words, weighted by idf, that led to it before and to no
other tool: at most `MAX_BONUS`, and never as much as a tool whose name the query gives (`fusion`). A word
that led to many tools says nothing. Whatever the weights are, the gain is within these limits.

Which words are learned: those that mcpzip knows anyway, because a tool or the table of word vectors has them;
nothing that looks like a value. So what only this user writes, such as the names of people and of projects,
is not learned.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest
from math import fsum

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import LEARNED_WORD
from mcpzip.search.capitals import capitalised
from mcpzip.search.index import Index
from mcpzip.search.keyword import max_score
from mcpzip.search.query import Plan
from mcpzip.search.tokenizer import STOP_WORDS, term_of, words

# Chosen by `bench.retrieval.learned`. What other values change in R@1: of requests that come again, of those
# after which a wrong tool was called, and of those that have nothing to do with what was learned.
MAX_BONUS = 0.3  # of a tool to which all words of the query led, and to no other; .15: −.02, +.05, ±0
HALF_KNOWN = 1.0  # uses after which a word counts half; .5: +.02, −.08, ±0
MIN_SHARE = 0.25  # of the query's words from which on it gains; .1: +.03, −.08, −.003; .35: −.02, +.05, ±0
MOST_TOOLS = 8  # that gain by one query

WORDS_OF_QUERY = 12  # that are learned; of a longer query the first
LONGEST_QUERY = 1_000  # characters; of a longer text nothing is learned
FEW_TERMS = 64  # that are looked up in the words of every tool
MOST_TERMS = 4_096  # whose tools are kept ready
_MOST_WEIGHT = 1e9

_QUOTED = lazy_pattern(r"\"[^\"]*\"?|“[^”]*”?|„[^“”]*[“”]?|«[^»]*»?|`[^`]*`?|(?<!\w)['‘][^'’]*['’](?!\w)")


class LearnedWords:
    """The words that led to tools. Immutable; safe between threads."""

    __slots__ = ("_by_number", "_by_term", "_decay", "_found", "_words")

    def __init__(
        self, words: Mapping[str, Mapping[str, float]], decay: Callable[[str], float] = lambda name: 1.0
    ) -> None:
        """words: how often each word led to a tool: by the tool's name, by the term. decay: the factor of
        these numbers of a tool.
        """
        self._words, self._decay = words, decay
        self._found: dict[str, list[tuple[str, float]]] = {}
        self._by_term: dict[str, list[tuple[str, float]]] | None = None
        self._by_number: tuple[Index, dict[int, str]] | None = None  # of the index that was searched last

    def _tools_of(self, term: str) -> list[tuple[str, float]]:
        """The tools to which ``term`` led; for each how much that says, 0…1."""
        found = self._found.get(term)
        if found is None:
            if len(self._found) >= MOST_TERMS:
                self._found = {}
            weights = [
                (name, weight * self._decay(name))
                for name, weight in self._weights(term)
                if 0 < weight < _MOST_WEIGHT
            ]
            total = fsum([weight for _, weight in weights])  # in any order the same
            found = self._found[term] = [
                (name, weight / (weight + HALF_KNOWN) * weight / total) for name, weight in weights if weight
            ]
        return found

    def _weights(self, term: str) -> list[tuple[str, float]]:
        """The tools to which ``term`` led, and how often. A table of all terms is made once it is worth it:
        after a call another object takes the place of this one.
        """
        if self._by_term is None and len(self._found) < FEW_TERMS:
            return [(name, terms[term]) for name, terms in self._words.items() if term in terms]
        by_term = self._by_term
        if by_term is None:
            by_term = {}
            for name, terms in self._words.items():
                for each, weight in terms.items():
                    by_term.setdefault(each, []).append((name, weight))
            self._by_term = by_term
        return by_term.get(term, [])

    def bonuses(self, index: Index, plan: Plan) -> dict[int, float]:
        """What documents gain for ``plan``, 0…`MAX_BONUS`: `MOST_TOOLS` at most."""
        terms = dict.fromkeys(map(term_of, plan.embedding_words)) if plan.embedding_words else {}
        known = terms or self._known_terms(index, plan)
        led = [(term, tools) for term in known if (tools := self._tools_of(term)) and term not in STOP_WORDS]
        if not led:
            return {}
        if terms:
            whole = sum([_idf(index, term) for term in terms if term not in STOP_WORDS])
        else:
            whole = max_score(index, plan)
        found: dict[str, float] = {}
        for term, tools in led:
            idf = _idf(index, term)
            for name, value in tools:
                found[name] = found.get(name, 0.0) + idf * value
        shares = [(-value / whole, name) for name, value in found.items() if value > MIN_SHARE * whole]
        if not shares:
            return {}
        return {
            number: MAX_BONUS * min((-share - MIN_SHARE) / (1 - MIN_SHARE), 1.0)
            for share, name in nsmallest(MOST_TOOLS, shares)
            for number in index.names.literal(name)
            if index.document(number).name == name
        }

    def _known_terms(self, index: Index, plan: Plan) -> list[str]:
        """The terms of ``plan`` that led to a tool, if it has no words for an embedding."""
        by_number = self._by_number
        if by_number is None or by_number[0] is not index:
            known = {term for terms in self._words.values() for term in terms}
            numbers = {number: term for term in known if (number := index.term_id(term)) is not None}
            self._by_number = by_number = index, numbers
        searched = sorted({number for group in plan.groups for number in group.terms})
        return [term for number in searched if (term := by_number[1].get(number)) is not None]


def _idf(index: Index, term: str) -> float:
    number = index.term_id(term)
    return index.max_idf if number is None else index.idf(number)


def learnable(
    text: str,
    searched: Sequence[str],
    corrected: Iterable[tuple[str, str]],
    in_tools: Callable[[str], bool],
    is_common: Callable[[str], bool],
) -> tuple[str, ...]:
    """The terms of a query that may be learned, `WORDS_OF_QUERY` at most.

    text: the query, as written. searched: its words, as searched. corrected: (as written, as searched).
    in_tools: whether a tool has a term. is_common: whether a word is in the table of word vectors.
    """
    if len(text) > LONGEST_QUERY:  # a document
        return ()
    values, names = _values(text)
    replaced = {written: right.split() for written, right in corrected}
    for found in (values, names):
        found.update([word for each in found & replaced.keys() for word in replaced[each]])
    read = [right for written in searched for right in replaced.get(written, (written,))]
    terms: dict[str, None] = {}
    for word in read:
        if word in values or word in STOP_WORDS or not _is_storable(word):
            continue
        term = term_of(word)
        if _is_storable(term) and (in_tools(term) or (word not in names and is_common(word))):
            terms[term] = None
            if len(terms) == WORDS_OF_QUERY:
                break
    return tuple(terms)


def _is_storable(word: str) -> bool:
    """Whether ``word`` may be stored as far as its form tells."""
    return 2 <= len(word) <= LEARNED_WORD and word.isalpha()


def _values(text: str) -> tuple[set[str], set[str]]:
    """The words of what looks like a value in ``text``: ids, addresses, paths, what is quoted; and those of
    what looks like a name: with a capital letter, but not at the beginning of a sentence.
    """
    values = {word for quoted in _QUOTED.findall(text) for word, _ in words(quoted)}
    names: set[str] = set()
    for token, bare, capital in capitalised(_QUOTED.sub(" ", text)):
        if _is_value(bare):
            values.update([word for word, _ in words(token)])
        elif capital:
            names.update([word for word, _ in words(token)])
    return values, names


def _is_value(token: str) -> bool:
    """Whether ``token`` is more than a word, or two with a hyphen."""
    parts = token.replace("’", "'").replace("'", "").split("-")
    if len(parts) > 2 or len(token) > LEARNED_WORD:
        return True
    return not all(part.isalpha() for part in parts if part)
