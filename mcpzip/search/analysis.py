"""One tool as the index takes it in: what each of its terms is worth there, and what it means.

The rule: an analysis depends on its tool and on nothing else of the catalog. That is why a tool that comes or
goes touches no other, why an index kept on disk is good for as long as its tools are, and why the order in
which tools came can't matter.

What a term is worth in a tool is BM25F (Robertson, Zaragoza & Taylor, "Simple BM25 extension to multiple
weighted fields", CIKM 2004): counts are weighted by field and normalised by the field's length, added up, and
only then saturated. It differs in one thing: a length is compared not with the catalog's average but with
what is usual for tools (`FieldWeight.usual`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcpzip.model.entry import Entry
from mcpzip.search.fields import Fields
from mcpzip.search.semantic.tool_vectors import ToolEmbedder
from mcpzip.search.tokenizer import is_stop_word, term_of, words
from mcpzip.search.verbs import first_verb


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """weight: what a word counts in this field. length: 0 ignores how long the field is, 1 divides by it.
    usual: words that the field has in most tools; there its length changes nothing.
    """

    weight: float
    length: float
    usual: float

    def share(self, length: int) -> float:
        """What a word counts in a field of ``length`` words."""
        return self.weight / (1 - self.length + self.length * length / self.usual)


# In the order of `Fields`. Set by cross-validation and rounded, with words alone, where no other value was
# better by more than .001 of nDCG@10 (`python -m bench.retrieval.constants`). Beside each, what is lost then
# without the field; where meaning counts too it is less.
FIELD_WEIGHTS: dict[str, FieldWeight] = {
    "name": FieldWeight(3.0, 0.6, 2.5),  # −.023; the length of a name doesn't matter
    "server": FieldWeight(2.0, 0.3, 1.5),  # −.013
    "title": FieldWeight(1.5, 0.6, 2.5),  # a second name, for the few that have one: half the name's weight
    "description": FieldWeight(1.0, 0.7, 20.0),  # −.060; a length of .2 or .9: −.005, −.003
    "parameters": FieldWeight(0.8, 0.3, 4.5),  # −.004
    "values": FieldWeight(0.2, 0.3, 2.0),  # nothing on average; the only place that says "webp" or "weekly"
    "parameter_descriptions": FieldWeight(0.4, 0.3, 13.0),  # −.003
}
SATURATION = 1.2  # BM25's k1, at its textbook value; .9: −.002, 2: −.002

_REMEMBERED = 16_384  # written words
_LONGEST_REMEMBERED = 64  # characters
_BRIEF = 6  # words of the name of a tool that is taken in by name only

Term = tuple[str, str]
"""A word and its term, of `words`."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """worths: by term, 0…1. name: the distinct terms of the tool's name in order, stop words too. verb: the
    families of its verb. written: every word that stands in it, and the word's term. rare: how many of
    these are in no table of words, all where there is none. vector: what it means, None where nothing can
    tell.
    """

    postings_of: dict[str, float]
    name: tuple[str, ...]
    verb: int
    written: dict[str, str]
    rare: int
    vector: bytes | None


class Analyst:
    """Takes tools in. Remembers the words it met, which makes it fast: four fifths were met before."""

    def __init__(self, describer: ToolEmbedder | None) -> None:
        self._describer = describer
        self._remembered: dict[str, Sequence[Term]] = {}

    def analyse(self, entry: Entry, *, with_meaning: bool = True, brief: bool = False) -> Analysis:
        """The analysis of ``entry``. Its vector is the better half of the work. brief: of the first words of
        its name, and of its server, alone; such a one has no vector.
        """
        fields = Fields.named(entry) if brief else Fields.of(entry)
        name = words(fields.name)[: _BRIEF if brief else None]
        written = dict(name)
        sums: dict[str, float] = {}
        for field, weight in FIELD_WEIGHTS.items():
            found = name if field == "name" else self._content(getattr(fields, field))
            if not found:
                continue
            share = weight.share(len(found))
            for _, term in found:
                sums[term] = sums.get(term, 0.0) + share
            written.update(found)
        return Analysis(
            postings_of={term: total / (SATURATION + total) for term, total in sums.items()},
            name=tuple(dict.fromkeys(term for _, term in name)),
            verb=first_verb(term for _, term in name),
            written=written,
            rare=sum(word not in self._describer for word in written) if self._describer else len(written),
            vector=self._describer.vector(fields) if self._describer and with_meaning and not brief else None,
        )

    def by_field(self, entry: Entry, rarities: Mapping[str, float]) -> dict[str, float]:
        """What the terms of ``rarities`` are worth in ``entry``, by the fields they come from."""
        fields = Fields.of(entry)
        shares: dict[str, dict[str, float]] = {}
        for field, weight in FIELD_WEIGHTS.items():
            found = words(fields.name) if field == "name" else self._content(getattr(fields, field))
            for _, term in found:
                if term in rarities:
                    parts = shares.setdefault(term, {})
                    parts[field] = parts.get(field, 0.0) + weight.share(len(found))
        worths: dict[str, float] = {}
        for term, parts in shares.items():
            total = sum(parts.values())
            for field, share in parts.items():
                worth = rarities[term] * share / (SATURATION + total)
                worths[field] = worths.get(field, 0.0) + worth
        return worths

    def _content(self, text: str) -> list[Term]:
        """The words of ``text`` without stop words."""
        found: list[Term] = []
        for run in text.split():
            pairs = self._remembered.get(run)
            if pairs is None:
                if len(self._remembered) >= _REMEMBERED:
                    self._remembered = {}
                pairs = _content(run)
                if len(run) <= _LONGEST_REMEMBERED:
                    self._remembered[run] = pairs
            found += pairs
        return found


def _content(run: str) -> list[Term]:
    """The words of ``run`` without stop words. What is written as one ("GitHub") is a word as a whole too."""
    pairs = words(run)
    found = [pair for pair in pairs if not is_stop_word(pair)]
    if len(pairs) > 1 and run.isalpha() and run.isascii():
        found.append((run.lower(), term_of(run.lower())))
    return found
