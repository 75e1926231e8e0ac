"""The analysis of one tool for the index: its term weights and its vector.

The rule: an analysis depends on its tool only. So adding or removing a tool changes no other, a stored index
stays valid as long as its tools don't change, and the order of the tools doesn't matter.

Term weights are those of BM25F (Robertson, Zaragoza & Taylor, "Simple BM25 extension to multiple weighted
fields", CIKM 2004): term frequencies are weighted by field and normalised by the field's length, added up,
and only then saturated. The one difference: a length is compared with the typical length of tools' fields, a
constant (`FieldWeight.typical_length`), instead of with the catalog's average.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.search.fields import Fields
from mcpzip.search.semantic.tool_vectors import ToolEmbedder
from mcpzip.search.tokenizer import is_stop_word, term_of, words
from mcpzip.search.verbs import first_verb


class FieldWeight(msgspec.Struct, frozen=True):
    """The parameters of a field in BM25F.

    weight: of a word in this field. b: length normalisation, from 0, none, to 1, full. typical_length: in
    words; a field of this length is not normalised.
    """

    weight: float
    b: float
    typical_length: float

    def word_weight(self, length: int) -> float:
        """The weight of a word in a field of ``length`` words."""
        return self.weight / (1 - self.b + self.b * length / self.typical_length)


# In the order of `Fields`. Chosen by cross-validation of the keyword tier alone, and rounded; no other value
# was better by more than .001 of nDCG@10 (`python -m bench.retrieval.constants`). Beside each, the loss of
# the keyword tier without the field; together with the semantic tier it is less.
FIELD_WEIGHTS: dict[str, FieldWeight] = {
    "name": FieldWeight(3.0, 0.6, 2.5),  # −.023; the length of a name doesn't matter
    "server": FieldWeight(2.0, 0.3, 1.5),  # −.013
    "title": FieldWeight(1.5, 0.6, 2.5),  # a second name, which few tools have: half the name's weight
    "description": FieldWeight(1.0, 0.7, 20.0),  # −.060; b of .2 or .9: −.005, −.003
    "parameters": FieldWeight(0.8, 0.3, 4.5),  # −.004
    "values": FieldWeight(
        0.2, 0.3, 2.0
    ),  # 0 on average; the only field with words such as "webp" or "weekly"
    "parameter_descriptions": FieldWeight(0.4, 0.3, 13.0),  # −.003
}
SATURATION = 1.2  # BM25's k1, at its textbook value; .9: −.002, 2: −.002

_CACHED_TOKENS = 16_384
_MAX_CACHED = 64  # characters
_NAME_ONLY_WORDS = 6  # words of the name of a tool that is indexed by name only

Term = tuple[str, str]
"""A word and its term, of `tokenizer.words`."""


class Analysis(msgspec.Struct, frozen=True):
    """What the index stores of a tool.

    term_weights: by term, 0…1. name_terms: the distinct terms of the tool's name in order, stop words too.
    verbs: the families of the name's verb. words: its words. rare_words: how many of these are not in the
    table of word vectors; all where there is no table. vector: packed, None without a table or without a
    known word.
    """

    term_weights: dict[str, float]
    name_terms: tuple[str, ...]
    verbs: int
    words: frozenset[str]
    rare_words: int
    vector: bytes | None


class _Tokens(dict[str, tuple[str, ...]]):
    """The words of tokens without stop words, or their terms: `part` is 0 or 1. A cache: four fifths of a
    tool's tokens occurred before.
    """

    def __init__(self, part: int) -> None:
        super().__init__()
        self._part = part

    def __missing__(self, token: str) -> tuple[str, ...]:
        found = tuple([pair[self._part] for pair in _content_words(token)])
        if len(token) <= _MAX_CACHED:
            if len(self) >= _CACHED_TOKENS:
                self.clear()
            self[token] = found
        return found


class Analyzer:
    """Analyzes tools."""

    def __init__(self, embedder: ToolEmbedder | None) -> None:
        self._embedder = embedder
        self._words, self._terms = _Tokens(0), _Tokens(1)

    def analyze(self, entry: Entry, *, with_vector: bool = True, name_only: bool = False) -> Analysis:
        """The analysis of ``entry``. The vector takes half of the time. name_only: of the first words of its
        name, and of its server's name, without a vector.
        """
        fields = Fields.name_only(entry) if name_only else Fields.of(entry)
        name = words(fields.name)[: _NAME_ONLY_WORDS if name_only else None]
        tokens: set[str] = set()
        frequencies: dict[str, float] = {}  # of terms, weighted by field
        get = frequencies.get
        for field, field_weight in FIELD_WEIGHTS.items():
            if field == "name":
                terms = [term for _, term in name]
            else:
                split = getattr(fields, field).split()
                tokens.update(split)
                terms = self._terms_of(split)
            if terms:
                weight = field_weight.word_weight(len(terms))
                for term, count in Counter(terms).items():
                    frequencies[term] = get(term, 0.0) + weight * count
        all_words = frozenset(chain([word for word, _ in name], *map(self._words.__getitem__, tokens)))
        embedder = self._embedder
        return Analysis(
            term_weights={term: total / (SATURATION + total) for term, total in frequencies.items()},
            name_terms=tuple(dict.fromkeys(term for _, term in name)),
            verbs=first_verb(term for _, term in name),
            words=all_words,
            rare_words=embedder.unknown(all_words) if embedder else len(all_words),
            vector=embedder.vector(fields) if embedder and with_vector and not name_only else None,
        )

    @property
    def has_vectors(self) -> bool:
        """Whether tools get vectors."""
        return self._embedder is not None

    def vector(self, entry: Entry) -> bytes | None:
        """The vector of ``entry``, as in its analysis."""
        return self._embedder.vector(Fields.of(entry)) if self._embedder else None

    def forget(self) -> None:
        """Empty the caches, which grow while tools are analyzed."""
        self._words, self._terms = _Tokens(0), _Tokens(1)

    def by_field(self, entry: Entry, idfs: Mapping[str, float]) -> dict[str, float]:
        """The scores of the terms of ``idfs`` in ``entry``, summed by the fields they are in."""
        fields = Fields.of(entry)
        by_term: dict[str, dict[str, float]] = {}
        for field, field_weight in FIELD_WEIGHTS.items():
            terms = self._terms_of(getattr(fields, field).split())
            if field == "name":
                terms = [term for _, term in words(fields.name)]
            for term in terms:
                if term in idfs:
                    weights = by_term.setdefault(term, {})
                    weights[field] = weights.get(field, 0.0) + field_weight.word_weight(len(terms))
        scores: dict[str, float] = {}
        for term, weights in by_term.items():
            total = sum(weights.values())
            for field, weight in weights.items():
                scores[field] = scores.get(field, 0.0) + idfs[term] * weight / (SATURATION + total)
        return scores

    def _terms_of(self, tokens: Iterable[str]) -> list[str]:
        return list(chain.from_iterable(map(self._terms.__getitem__, tokens)))


def _content_words(token: str) -> list[Term]:
    """The words of ``token`` without stop words. One of several words ("GitHub") is also a word itself."""
    pairs = words(token)
    found = [pair for pair in pairs if not is_stop_word(pair)]
    if len(pairs) > 1 and token.isalpha() and token.isascii():
        found.append((token.lower(), term_of(token.lower())))
    return found
