"""Query analysis: from the text of a query to the terms, filters and documents that it names.

The rule: a ranking depends on the `Plan` only, never on the query's text. So the plan is the cache's key: two
queries share a ranking exactly where they have equal plans, such as with another article or "please", or with
a misspelling corrected to the same word; without a table of word vectors also with other stop words, or with
other unknown words.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from mcpzip.model.limits import NAME
from mcpzip.search.capitals import capitalised
from mcpzip.search.english_words import EnglishWords
from mcpzip.search.file_paths import without_paths
from mcpzip.search.index import Index
from mcpzip.search.lexicon import gloss, gloss_text, synonyms
from mcpzip.search.phrases import documents_with_phrase
from mcpzip.search.product_names import FULL_NAMES, joined
from mcpzip.search.query_syntax import ParsedQuery, parse_query
from mcpzip.search.tokenizer import STOP_WORDS, content_words, fold, is_bigram, term_of, words
from mcpzip.search.values import without_values
from mcpzip.search.verbs import families, in_question
from mcpzip.search.vocabulary import Correction, is_common_typo

MAX_WORDS = 128  # words of a query that are looked up; a longer text is a document, not a query
MAX_CORRECTIONS = 12  # words of a query that are compared with the whole vocabulary
CORRECTED_WEIGHT = 0.85  # the weight of a corrected word; .7 to .9 are equal, 1: −.002 of nDCG@10
RELATED_WEIGHT = 0.5  # the weight of an unknown verb that is replaced by verbs of its family
TRANSLATED_WEIGHT = 0.85  # the weight of a translated word
LONG_NAME = 8  # letters of a misspelled name from which on it is hardly another one
EMPTY = frozenset(("a", "an", "the", "please", "kindly", "something", "anything", "tool", "tools"))
"""Words that never change the meaning of a query."""

_MAX_QUERY = 20_000  # characters, before and after folding
_MAX_TOKENS = 2_048  # words
_SHORTEST_TITLE = 4  # words


class Filters(msgspec.Struct, frozen=True):
    """The tools that are searched.

    server: those of the server with this name. read_only: True: those with a readOnlyHint, False: the others.
    """

    server: str | None = None
    read_only: bool | None = None


class TermGroup(msgspec.Struct, frozen=True, order=True):
    """Alternative terms for a word of the query. A document's score for the group is that of its best term.

    weight: the weight of the word, 0…1. counted: whether the group adds to `keyword.max_score`; False for a
    variant of words that have their own groups (``pullrequest`` beside ``pull`` and ``request``).
    """

    terms: tuple[int, ...]
    weight: float
    counted: bool


class Plan(msgspec.Struct, frozen=True):
    """All that a ranking depends on.

    groups: in the order of the query. stop_word_terms: the query's terms in the index that are in no group,
    which are stop words in the names of tools. verbs: the families of its verbs. unknown: the number of its
    unknown words. literal, same_words: the documents that it names (`names`). embedding_words: its words in
    order, for a text embedding. servers: those to search, None: all. read_only: see `Filters`. excluded:
    terms that a tool must not have. phrases: terms that a tool must have one after the other; only phrases
    that some tool has. match_all: there are filters and no words, so every tool that the filters leave
    matches.
    """

    groups: tuple[TermGroup, ...]
    stop_word_terms: tuple[int, ...]
    verbs: int
    unknown: int
    literal: tuple[int, ...]
    same_words: tuple[int, ...]
    embedding_words: tuple[str, ...]
    servers: tuple[str, ...] | None = None
    read_only: bool | None = None
    excluded: tuple[int, ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    match_all: bool = False


class QueryAnalysis(msgspec.Struct, frozen=True):
    """A plan, and the words of the query that it comes from.

    words: the groups of the plan, each with the words that it stands for. unknown: words without a term, also
    those that were corrected to a word without one; a product's name in several words is one.
    corrected: (as written, as searched). All in the order of the query.
    """

    plan: Plan
    words: tuple[tuple[TermGroup, tuple[str, ...]], ...]
    unknown: tuple[str, ...]
    corrected: tuple[tuple[str, str], ...]


def analyze_query(
    query: str | ParsedQuery, filters: Filters, index: Index, english: EnglishWords | None = None
) -> QueryAnalysis:
    """``query`` in terms of ``index``. Words in ``english`` are not corrected, and others may be corrected to
    them. Never raises.
    """
    parsed = parse_truncated(query) if isinstance(query, str) else query
    text = without_values(without_paths(parsed.text), lambda word: index.term_id(term_of(word)) is not None)
    tokens, replaced = _with_names(text, index)
    looked_up = list(dict.fromkeys(content_words(tokens)))[:MAX_WORDS]
    builder = _GroupBuilder(index, english, parsed.text)
    if not text.isascii():
        builder.translate(text)
    builder.look_up(looked_up, {part for parts in replaced.values() for part in parts} - replaced.keys())
    grouped = {term for group in builder.words for term in group.terms}
    indexed = {number for _, term in tokens if (number := index.term_id(term)) is not None}
    excluded = {index.term_id(term) for word in parsed.excluded_words for _, term in words(word)}
    phrases = {tuple(term for _, term in words(phrase)) for phrase in parsed.phrases}
    plan = Plan(
        groups=tuple(builder.words),
        stop_word_terms=tuple(sorted(indexed - grouped)),
        verbs=in_question(builder.verbs, [word for word, _ in tokens[:2]]),
        unknown=len(builder.unknown),
        literal=index.names.literal(parsed.written) or index.names.literal(parsed.text),
        same_words=index.names.by_words(tokens),
        embedding_words=builder.embedding_words(tokens) if english else (),
        servers=_servers(index, parsed, filters.server),
        read_only=filters.read_only,
        excluded=tuple(sorted(number for number in excluded if number is not None)),
        phrases=tuple(sorted(phrase for phrase in phrases if documents_with_phrase(index, phrase))),
        match_all=not tokens and bool(parsed.servers or parsed.excluded_servers or parsed.excluded_words),
    )
    position = {word: i for i, (word, _) in enumerate(looked_up)}
    ordered = sorted(builder.words.items(), key=lambda item: position.get(item[1][0], -1))
    return QueryAnalysis(
        plan,
        tuple((group, tuple(_as_written(stands_for, replaced))) for group, stands_for in ordered),
        tuple(dict.fromkeys(" ".join(replaced.get(word, (word,))) for word in builder.unknown)),
        tuple(builder.corrected),
    )


def parse_truncated(query: str) -> ParsedQuery:
    """The first 20,000 characters of ``query``, parsed."""
    query = query[:_MAX_QUERY]
    while len(fold(query)) > _MAX_QUERY:
        query = query[: len(query) // 2]
    return parse_query(query.strip())


def _with_names(text: str, index: Index) -> tuple[list[tuple[str, str]], dict[str, tuple[str, ...]]]:
    """The `words` of ``text``, in which the names of products and servers are spelled as the catalog has
    them, however the query spells them: for ``sqlite-explorer``, also "SQLite Explorer" and "sqliteexplorer".
    Several strings with a stop word among them are no name: "get to" is not ``getto``. And the words that
    other words stand for now.
    """
    spellings = index.spellings
    pairs: list[tuple[str, str]] = []
    strings: list[tuple[int, int]] = []  # those that are a name, without white space
    for string in text.split():
        start = len(pairs)
        pairs += words(string)
        if len(pairs) >= _MAX_TOKENS:
            del pairs[_MAX_TOKENS:]
            break
        if len(string) <= NAME and "".join([word for word, _ in pairs[start:]]) in spellings:
            strings.append((start, len(pairs)))
    written = [word for word, _ in pairs]
    found = [span for span in joined(written, spellings) if STOP_WORDS.isdisjoint(written[slice(*span)])]
    taken = {number for span in found for number in range(*span)}
    found += [span for span in strings if taken.isdisjoint(range(*span))]
    taken.update(number for span in strings for number in range(*span))
    found += [(n, n + 1) for n, word in enumerate(written) if word in spellings and n not in taken]
    replaced: dict[str, tuple[str, ...]] = {}
    for start, stop in sorted(found, reverse=True):
        parts = tuple(written[start:stop])
        spelled = spellings["".join(parts)]
        if parts != tuple(word for word, _ in spelled):
            pairs[start:stop] = spelled
            # A name that is written in its own spelling, too, is written in both.
            replaced.update({word: (*parts, word) if word in written else parts for word, _ in spelled})
    return pairs, replaced


def _names(text: str) -> frozenset[str]:
    """The words of ``text`` that capital letters make names; none in a title, where most words have them."""
    strings = [(written, capital) for written, _, capital in capitalised(text)]
    named = [written for written, capital in strings if capital]
    if len(strings) >= _SHORTEST_TITLE and 2 * len(named) > len(strings) and strings[0][0][0].isupper():
        return frozenset()
    return frozenset(word for written in named for word, _ in words(written))


def _as_written(searched: Iterable[str], replaced: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The words ``searched`` as they were written, each once."""
    yield from dict.fromkeys(part for word in searched for part in replaced.get(word, (word,)))


def _servers(index: Index, parsed: ParsedQuery, only: str | None) -> tuple[str, ...] | None:
    """The servers that the query and the filter select; None for all, () where no server matches."""
    if not parsed.servers and not parsed.excluded_servers and only is None:
        return None
    known = sorted(index.servers)
    selected = set(known)
    if parsed.servers:
        selected = {server for name in parsed.servers for server in matching_servers(known, name)}
    selected -= {server for name in parsed.excluded_servers for server in matching_servers(known, name)}
    if only is not None:
        selected &= set(matching_servers(known, only))
    return tuple(sorted(selected))


def matching_servers(known: list[str], name: str) -> list[str]:
    """Those of ``known`` that are called ``name``; else those that are when case is ignored; else those whose
    names have its letters and digits; else those whose names have all words of ``name``.
    """
    if name in known:
        return [name]
    if len(name) > NAME:
        return []
    same = [server for server in known if server.casefold() == name.casefold()]
    pairs = words(name)
    terms, letters = {term for _, term in pairs}, "".join(word for word, _ in pairs)
    same = same or [server for server in known if letters == "".join(word for word, _ in words(server))]
    return same or [server for server in known if terms and terms <= {t for _, t in words(server)}]


class _GroupBuilder:
    """Builds the term groups of a query.

    words: the groups, each with the words that it stands for. verbs: the families of the query's verbs.
    unknown, corrected: see `QueryAnalysis`.
    """

    def __init__(self, index: Index, english: EnglishWords | None, text: str) -> None:
        """text: of the query, with its capital letters."""
        self._index = index
        self._english = english
        self._text = text
        self._groups: dict[tuple[int, ...], TermGroup] = {}
        self._corrections = 0
        self._translated = self._foreign = False
        self._translations: list[str] = []  # the English words of what is in other scripts than Latin
        self._replacements: dict[str, tuple[str, ...]] = {}  # of words that stand for other words
        self.words: dict[TermGroup, list[str]] = {}
        self.verbs = 0
        self.unknown: list[str] = []
        self.corrected: list[tuple[str, str]] = []

    @cached_property
    def _names(self) -> frozenset[str]:
        """Words of the query that may be names, and so are seldom corrected."""
        return _names(self._text)

    def translate(self, text: str) -> None:
        """Add groups for the parts of ``text`` in other scripts than Latin, translated."""
        for english in dict.fromkeys(gloss_text(text).split()):
            self._add_translation(english, english)
            self._translations.append(english)
            self._translated = True

    def look_up(self, pairs: list[tuple[str, str]], parts: Collection[str] = ()) -> None:
        """Add groups for all ``pairs`` of `words`, and for neighbours that are a known word when joined.
        parts: words that the query has as parts of a name too, which are not unknown.
        """
        joined = self._add_joined(pairs)
        for word, term in pairs:
            self.verbs |= families(term)
            number = self._index.term_id(term)
            if number is not None:
                counted = word not in joined and not (self._translated and is_bigram(word))
                self._add([number], 1.0, word, counted=counted)
        self._foreign = self._translated or any(
            self._index.term_id(term) is None and self._is_foreign(word) for word, term in pairs
        )
        for word, term in pairs:
            if self._index.term_id(term) is None and word not in joined and word not in parts:
                self._add_unindexed(word, term)
        if any(is_bigram(word) for written in self.words.values() for word in written) or self._translated:
            # 天气预报 is split into 天气, 气预 and 预报: the second is an artefact, no unknown word.
            self.unknown = [word for word in self.unknown if not is_bigram(word)]

    def _add_joined(self, pairs: list[tuple[str, str]]) -> frozenset[str]:
        """Add groups for neighbours that are a word of the catalog when joined ("Git Hub", "to-do"), and for
        three or four that are a name. Returns the parts, whose own groups are not counted.
        """
        parts: set[str] = set()
        written = [word for word, _ in pairs]
        spans = [(left, left + 2) for left in range(len(pairs) - 1)]
        spans += [span for span in joined(written, self._index.spellings) if span[1] - span[0] > 2]
        for start, stop in spans:
            together = written[start:stop]
            word = "".join(together)
            if word in self._index.word_frequencies and not is_bigram(word):
                number = self._index.term_id(term_of(word))
                if number is not None:
                    for part in together:
                        self._add([number], 1.0, part)
                    parts.update(together)
                    self._replacements.update(dict.fromkeys(together[1:], ()) | {together[0]: (word,)})
        return frozenset(parts)

    def embedding_words(self, pairs: list[tuple[str, str]]) -> tuple[str, ...]:
        """The words of ``pairs``, corrected and translated, in order and with repetitions. Stop words other
        than `EMPTY` are included, because "who is in" has a meaning.
        """
        replaced = [
            each
            for word, _ in pairs[: 2 * MAX_WORDS]
            if not is_bigram(word) and word not in EMPTY
            for each in self._replacements.get(word, (word,))
        ]
        return (*self._translations, *[FULL_NAMES.get(word, word) for word in replaced])

    def _is_foreign(self, word: str) -> bool:
        """Whether ``word`` is known in another language only."""
        return (self._english is None or word not in self._english) and gloss(word) is not None

    def _add_unindexed(self, word: str, term: str) -> None:
        """Add a group for ``word``, whose term no tool has: related verbs, its translation or correction."""
        if self._add_related_verbs(term, word):
            return
        known = self._english is not None and word in self._english
        english = gloss(word) if self._foreign or not known else None
        if english is None:
            if known:  # an English word, so not misspelled
                self.unknown.append(word)
            else:
                self._add_correction(word)
            return
        self._replacements[word] = english
        if english:
            self.corrected.append((word, " ".join(english)))
        for each in english:
            self._add_translation(each, word)

    def _add_translation(self, english: str, word: str) -> None:
        """Add a group for ``english``, the translation of ``word``, if a tool has it or a related verb."""
        terms = [term_of(each) for each in (english, *synonyms(english))]
        term = next((each for each in terms if self._index.term_id(each) is not None), terms[0])
        self.verbs |= families(term)
        number = self._index.term_id(term)
        if number is not None:
            self._add([number], TRANSLATED_WEIGHT, word)
        else:
            self._add_related_verbs(term, word)

    def _add_related_verbs(self, term: str, word: str) -> bool:
        """Add a group of the catalog's verbs that are in a family of ``term``. Returns whether any are."""
        related = sorted(verb for verb, its in self._index.verbs.items() if its & families(term))
        if related:
            self._add(related, RELATED_WEIGHT, word)
        return bool(related)

    def _add_correction(self, word: str) -> None:
        """Add groups for the correction of ``word``, if there is one: the catalog's where it is likely, else
        the English word's, else the catalog's.
        """
        self._corrections += 1
        if self._corrections > MAX_CORRECTIONS:
            self.unknown.append(word)
            return
        correction = self._index.vocabulary.correct(word)
        meant = None if correction and correction.likely else self._english_for(word)
        # Two words written as one aren't a typo, unless it is a common one: "getdate" is not "getdata".
        is_split = correction is not None and correction.kind == "split"
        if meant is not None and (not is_split or is_common_typo(meant, word)):
            self._add_meant(word, meant)
            return
        if correction is None or (word in self._names and not self._may_be_name(word, correction)):
            self.unknown.append(word)
            return
        terms = [self._index.terms[term_of(known)] for known in correction.alternatives]
        self.verbs |= families(term_of(correction.alternatives[0]))
        if correction.kind == "split":
            self._replacements[word] = correction.alternatives
            for term in terms:
                self._add([term], CORRECTED_WEIGHT, word)
        else:
            self._replacements[word] = correction.alternatives[:1]
            self._add(sorted(set(terms)), CORRECTED_WEIGHT, word)
        self.corrected.append((word, " ".join(self._replacements[word])))

    def _may_be_name(self, word: str, correction: Correction) -> bool:
        """Whether ``word``, a name, may be a misspelling of what tools have, and no other name: "Markus" is
        no "markup".
        """
        if correction.kind != "typo" or correction.likely or len(word) >= LONG_NAME:
            return True
        return correction.alternatives[0] in self._index.spellings

    def _english_for(self, word: str) -> str | None:
        """The English word that ``word`` is a misspelling of, if it is no name."""
        return None if self._english is None or word in self._names else self._english.nearest(word)

    def _add_meant(self, word: str, meant: str) -> None:
        """Add a group for the English word ``meant`` in place of the misspelled ``word``."""
        self._replacements[word] = (meant,)
        term = term_of(meant)
        if term != term_of(word):  # else it is another form of the word and no misspelling
            self.corrected.append((word, meant))
        self.verbs |= families(term)
        number = self._index.term_id(term)
        if number is not None:
            self._add([number], CORRECTED_WEIGHT, word)
        elif not self._add_related_verbs(term, word):
            self.unknown.append(word)

    def _add(self, terms: Iterable[int], weight: float, word: str, *, counted: bool = True) -> None:
        """Add a group for ``word``, or ``word`` to the group of these terms: a repeated word counts once."""
        group = TermGroup(tuple(terms), weight, counted)
        group = self._groups.setdefault(group.terms, group)
        written = self.words.setdefault(group, [])
        if word not in written:
            written.append(word)
