"""Families of verbs: what a tool does, by the verb of its name.

The rule: half of the near misses of keyword search are the right server and the wrong verb (`delete_task` for
"show my tasks"). So the verb of a tool's name and the verbs of the query are compared by *family*: "add a
record" matches `create_record` and contradicts `list_records`. The table holds common verbs of programming
interfaces and was not taken from any catalog. A verb may be in several families; a name or a query without a
verb of the table neither matches nor contradicts.
"""

from collections.abc import Iterable, KeysView, Sequence
from functools import cache

from mcpzip.search.stemmer import stem

FAMILIES: dict[str, str] = {
    "read": "get fetch retrieve read show view display describe inspect see check examine open load",
    "list": "list enumerate browse show",
    "search": "search find query lookup look seek discover locate filter",
    "count": "calculate compute count measure evaluate analyze analyse estimate sum",
    "compare": "compare diff match",
    "create": "create add new make insert generate build compose write draft register produce append put",
    "update": "update edit modify change set rename replace adjust patch alter rewrite correct mark",
    "delete": "delete remove erase drop clear destroy purge discard trash uninstall wipe unset revoke",
    "send": "send post publish share submit forward deliver reply",
    "save": "save store record persist keep export download",
    "upload": "upload import attach",
    "move": "move relocate transfer migrate",
    "copy": "copy duplicate clone replicate",
    "run": "run execute start launch invoke trigger call play resume begin",
    "stop": "stop kill terminate halt cancel abort end pause close quit",
    "convert": "convert transform translate turn render",
    "join": "merge join combine connect link",
}
_READING = ("read", "list", "search", "count", "compare")
_WRITING = ("create", "update", "delete", "send", "save", "upload", "move")

_BITS = {family: 1 << place for place, family in enumerate(FAMILIES)}
READING = sum(_BITS[family] for family in _READING)
WRITING = sum(_BITS[family] for family in _WRITING)

_QUESTIONS = frozenset(["what", "whats", "when", "where", "which", "who", "whos", "whose"])
_HOW = ["big", "deep", "far", "fast", "high", "large", "long", "many", "much", "often", "old", "tall"]
_TWO_WORD_QUESTIONS = {"how": frozenset(_HOW), "are": frozenset(["there"]), "is": frozenset(["there"])}
_ANSWERING = _BITS["read"] | _BITS["list"]


def family(name: str) -> int:
    """The bit of a family in the masks that `families` returns."""
    return _BITS[name]


def families(term: str) -> int:
    """The families of ``term`` as a bit mask; 0 where it is no verb of the table."""
    return _by_term().get(term, 0)


def verbs() -> KeysView[str]:
    """The terms of the table's verbs."""
    return _by_term().keys()


def first_verb(terms: Iterable[str]) -> int:
    """The families, as a bit mask, of the first verb among the ``terms`` of a tool's name."""
    return next((bits for bits in map(families, terms) if bits), 0)


def in_question(verbs: int, words: Sequence[str]) -> int:
    """The families that ``verbs``, those of a query, mean if its ``words`` ask for something: "which
    containers are running" is about reading. "How do I send it" is not: it asks for a tool that sends.
    """
    asks = words[:1] and (
        words[0] in _QUESTIONS or (words[1:2] and words[1] in _TWO_WORD_QUESTIONS.get(words[0], ()))
    )
    return verbs & ~WRITING | _ANSWERING if asks else verbs


def contradict(query: int, tool: int) -> bool:
    """Whether the verbs of the query only read and the tool's verb only writes, or the other way round."""
    if query & tool or not tool:
        return False
    reads, writes = bool(query & READING), bool(query & WRITING)
    return (reads and not writes and not tool & ~WRITING) or (writes and not reads and not tool & ~READING)


@cache
def _by_term() -> dict[str, int]:
    table: dict[str, int] = {}
    for family, verbs in FAMILIES.items():
        for verb in verbs.split():
            table[stem(verb)] = table.get(stem(verb), 0) | _BITS[family]
    return table
