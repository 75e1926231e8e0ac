"""Requests for the tools of a catalog, made from the catalog itself without a model (pure).

The rule: equal tools give equal requests, and no request is a copy of its tool's name: that would be found by
construction. A request of two tools that can't be told apart is one request, which either answers.

Self-made requests use the words of the catalog, so they are easier than those of a person. What they measure
is a difference: between two settings, two catalogs, or two servers.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from mcpzip.model.entry import Entry
from mcpzip.search import lexicon
from mcpzip.search.tokenizer import content_words, is_bigram, is_stop_word, term_of, words
from mcpzip.search.verbs import FAMILIES, families

OWN = "own"
"""The kind of the requests that a user wrote."""
KINDS = {
    "sentence": "the first sentence of the description, without the server's name",
    "paraphrase": "the same, its verb and common nouns replaced by words of the same meaning",
    "unnamed": "the same, without the words of the tool's name",
    "synonyms": "the tool's name in plain words, its verb and common nouns replaced likewise",
    "typo": "the tool's name in plain words, one of them misspelt",
}
"""The kinds of self-made requests, the easiest first, and how each is made."""

_SENTENCE_WORDS = 16  # of a request at most
_LEAST_WORDS = 2  # different words of a request, stop words not counted; of an unnamed one, nor verbs
_ADDED_WORDS = 3  # of the description, where the name alone is too short for a request
_ALTERNATIVES = 5  # first verbs of a family that replace another one
_MISSPELT = 5  # letters of a word that is misspelt, at least
_SCANNED = 4_000  # characters of a description in which its first sentence is searched
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|[。！？\n]")
_PUNCTUATION = "\"'`“”‘’«»-–—*_#()[]{}<>.,;:!?/\\|"


@dataclass(frozen=True, slots=True)
class Request:
    """A request and the tools that answer it.

    query: in plain words, as an agent sends it to `search_tools`. needs: of each thing that is asked for, the
    names of the tools that do it, any of which is right. kind: one of `KINDS`, or any name of the user's.
    meant: of a misspelt query, the same without the mistake; else "".
    """

    query: str
    needs: tuple[frozenset[str], ...]
    kind: str = OWN
    meant: str = ""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all right tools, sorted."""
        return tuple(sorted(frozenset().union(*self.needs)))


def build(entries: Iterable[Entry]) -> list[Request]:
    """The requests for ``entries``, sorted by kind and tool: of each tool one of each kind that its texts are
    enough for.
    """
    order = list(KINDS)
    found: dict[tuple[str, str], tuple[set[str], str]] = {}
    for entry in entries:
        for kind, query, meant in _of_tool(entry):
            found.setdefault((kind, query), (set(), meant))[0].add(entry.name)
    made = [
        Request(query, (frozenset(tools),), kind, meant) for (kind, query), (tools, meant) in found.items()
    ]
    return sorted(made, key=lambda request: (order.index(request.kind), request.tools, request.query))


def sample(entries: Sequence[Entry], most: int) -> list[Entry]:
    """``most`` of ``entries``, chosen by a hash of their names: always the same, and of a catalog that grows
    by one tool, at most one other.
    """
    return sorted(entries, key=lambda entry: (crc32(entry.name.encode("utf-8", "replace")), entry.name))[
        : max(most, 0)
    ]


def first_sentence(text: str) -> str:
    """The first sentence or line of ``text`` in words that no search reads as an operator (`-word`,
    ``server:name``, quotes).
    """
    sentence = next((part for part in _SENTENCE_END.split(text[:_SCANNED]) if part.strip()), "")
    return " ".join(_plain(sentence)[:_SENTENCE_WORDS])


def terms(text: str) -> frozenset[str]:
    """The terms of ``text`` without stop words, or all of them where there are no others."""
    return frozenset(term for _, term in content_words(words(text)))


# --- the kinds ----------------------------------------------------------------------------------------------


def _of_tool(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """``(kind, query, meant)`` of each request for ``entry``."""
    name, whole = terms(entry.tool), terms(entry.name)
    for kind, query, meant in _candidates(entry):
        asked = {term for word, term in words(query) if not is_stop_word((word, term))}
        about = {term for term in asked if not families(term)} if kind == "unnamed" else asked
        if len(about) >= _LEAST_WORDS and asked not in (name, whole):
            yield kind, query, meant


def _candidates(entry: Entry) -> Iterator[tuple[str, str, str]]:
    own = frozenset(term for _, term in words(entry.tool))
    sentence = first_sentence(entry.description)
    whole = _without(sentence, frozenset(term for _, term in words(entry.server)))
    yield "sentence", whole, ""
    seed = entry.name
    if paraphrased := _replaced(whole.split(), own | terms(sentence), seed):
        yield "paraphrase", paraphrased, ""
        yield "unnamed", _without(paraphrased, own), ""
    name = [word for word, _ in content_words(words(entry.tool)) if not is_bigram(word)]
    if len(name) < _LEAST_WORDS:
        rest = words(_without(sentence, own))
        name += [pair[0] for pair in rest if not is_stop_word(pair) and not is_bigram(pair[0])][:_ADDED_WORDS]
    if replaced := _replaced(name, own | terms(entry.description[:_SCANNED]), seed):
        yield "synonyms", replaced, ""
    if misspelt := _misspelt(name, seed):
        yield "typo", misspelt, " ".join(name)


def _plain(text: str) -> list[str]:
    """The words of ``text`` as written, without punctuation around them."""
    stripped = (token.strip(_PUNCTUATION) for token in text.replace(":", " ").replace('"', " ").split())
    return [token for token in stripped if token]


def _without(text: str, removed: frozenset[str]) -> str:
    """``text`` without the words that consist of ``removed`` terms, stop words of ``removed`` excepted."""
    kept = []
    for token in text.split():
        pairs = words(token)
        if not pairs or any(term not in removed or is_stop_word((word, term)) for word, term in pairs):
            kept.append(token)
    return " ".join(kept)


def _replaced(tokens: Sequence[str], written: frozenset[str], seed: str) -> str:
    """``tokens`` with the first verb and the nouns replaced for which there is a word of the same meaning
    whose terms are not in ``written``; "" if there is none. seed: decides between several such words.
    """
    made, changed, has_verb, number = [], False, False, crc32(seed.encode("utf-8", "replace"))
    for token in tokens:
        pairs = words(token)
        if len(pairs) == 1 and not is_stop_word(pairs[0]):
            word = pairs[0][0]
            like = () if has_verb else _verbs_like(word)  # a later one may be a noun: "a list", "a record"
            has_verb = has_verb or bool(like)
            like = like or lexicon.synonyms(word) or lexicon.synonyms(word.removesuffix("s"))
            if fresh := [one for one in like if terms(one).isdisjoint(written)]:
                token, changed = fresh[number % len(fresh)], True
        made.append(token)
    return " ".join(made) if changed else ""


def _verbs_like(word: str) -> tuple[str, ...]:
    """The commonest verbs of the first family of ``word``, without itself; () for a word of no family."""
    term = term_of(word)
    for verbs in map(str.split, FAMILIES.values()):
        if term in map(term_of, verbs):
            return tuple(verb for verb in verbs[:_ALTERNATIVES] if term_of(verb) != term)
    return ()


def _misspelt(name: Sequence[str], seed: str) -> str:
    """``name`` with a slip in its longest word: two letters swapped, one left out or one doubled; "" if the
    word is short. The first letter stays, as in most typing errors.
    """
    longest = max(range(len(name)), key=lambda at: (len(name[at]), -at), default=None)
    if longest is None or len(name[longest]) < _MISSPELT or not name[longest].isalpha():
        return ""
    word, number = name[longest], crc32(seed.encode("utf-8", "replace"))
    at = 1 + number // 3 % (len(word) - 2)
    slips = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
    )
    wrong = slips[number % len(slips)]
    if wrong == word:  # two equal letters were swapped
        wrong = slips[1]
    return " ".join((*name[:longest], wrong, *name[longest + 1 :]))
