"""Names that pass for others, and tools of other servers that a text names or copies (pure).

Sources: Invariant Labs, *tool shadowing* (April 2025); OWASP MCP Top 10, MCP09; Unicode Technical Standard 39
for look-alikes.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mcpzip.checks.confusables import is_lookalike, skeleton
from mcpzip.checks.finding import Hit, Severity
from mcpzip.checks.others import FEWEST_WORDS, Described, Others, bare

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]")
_BEFORE = re.compile(
    r"(?:\b(?:before|after|instead of|whenever|when|every time|each time|prior to|rather than|do not use|"
    r"don't use|"
    r"never use|do not call|don't call|never call|replaces|replacement for|override|overrides|every|each)"
    r"(?: (?:the|every|any|each|calling|using|invoking|call|calls|of|to|tool|running|you|a)){0,4} "
    r"[`'\"(]{0,2})$"
)
_AFTER = re.compile(
    r"^[`'\")]{0,2}(?: tool)?(?: (?:is|are|must|should|has|was|of|the|server|calls?|which|also)){0,5},? ?"
    r"(?:;|\bdeprecated|\bunsafe|\bbroken|\bmust\b|\bused,|\bcalled,|\bslow|\bobsolete|\balways)"
)
_CONTEXT = 80
_MOST_NAMES = 400
"""Names in one text that are looked up."""
_SHORTEST = 5
"""Letters of a server's name of which one may be wrong by accident."""
_COPY = 0.8
"""The share of words that two descriptions have in common for one to be a copy of the other."""


def lookalike(name: str, server: str, others: Others) -> Iterator[Hit]:
    """A name that reads as Latin letters and isn't."""
    if is_lookalike(name):
        wide = skeleton(name).isascii() and not re.search("[A-Za-z]", name)
        severity: Severity = "hard" if others.owner(skeleton(name), server) or not wide else "risky"
        yield Hit("names.lookalike", severity, 0, len(name))


def typosquat(name: str, server: str, others: Others) -> Iterator[Hit]:
    """A server whose name is another's but for one letter, or two that changed places. Digits don't count:
    they number servers of the same kind.
    """
    plain = skeleton(name).lower()
    short = bare(name)
    for other, there in others.servers.items():
        if other in (server, name):
            continue
        if plain == other.lower() and name.lower() != other.lower():
            yield Hit("names.typosquat", "hard", 0, len(name))
            return
        if min(len(short), len(there)) >= _SHORTEST and _one_apart(short, there):
            yield Hit("names.typosquat", "risky", 0, len(name))
            return


def _one_apart(one: str, other: str) -> bool:
    """Whether one letter is missing, added, wrong, or two neighbours are exchanged (Damerau 1964)."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    begin = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    rest, left = one[begin:], other[begin:]
    changed = rest[:1] + left[:1]
    if any(not char.isalpha() for char in changed):
        return False
    swapped = rest[:2] == left[:2][::-1] and rest[2:] == left[2:]
    if len(rest) == len(left):
        return rest[1:] == left[1:] or swapped
    longer, shorter = (rest, left) if len(rest) > len(left) else (left, rest)
    return longer[1:] == shorter and not (shorter == "" and longer == "s")


def mentioned(text: str, server: str, others: Others) -> frozenset[str]:
    """The names in ``text`` that are tools of other servers. Names that are ordinary words don't count: a
    name has a separator or a capital inside.
    """
    if not others.tools:
        return frozenset()
    found = set()
    for word in {*_NAME.findall(text)}:
        if "__" in word:
            prefix, _, tool = word.partition("__")
            if prefix != server and prefix in others.tools.get(tool, ()):
                found.add(word)
        distinct = "_" in word or "-" in word or "." in word or _INNER_CAPITAL.search(word)
        if distinct and others.owner(word, server):
            found.add(word)
    return frozenset(found)


def mentions(text: str, named: frozenset[str]) -> Iterator[Hit]:
    """The first tool of another server that ``text`` says when or how to use; else the first it names. named:
    the names that count.
    """
    first: Hit | None = None
    for count, found in enumerate(found for found in _NAME.finditer(text) if found[0] in named):
        if count == _MOST_NAMES:
            break
        start, end = found.span()
        before = " ".join(text[max(0, start - _CONTEXT) : start].lower().split(" "))
        if _BEFORE.search(before) or _AFTER.match(text[end : end + _CONTEXT].lower()):
            yield Hit("names.other-tool", "risky", start, end)
            return
        first = first or Hit("names.other-tool", "note", start, end)
    if first is not None:
        yield first


def copies(tools: Sequence[Described], others: Others) -> Iterator[tuple[Described, Hit]]:
    """The tools that are nearly the same as another server's.

    If most of a server's tools are, it is another instance of that server, and only the first is told, as a
    note. A copy with a word or a parameter more is risky: it can take the calls that are meant for the
    original, and ask for more.
    """
    found: list[tuple[Described, Described]] = []
    for one in tools:
        best = max(
            (other for other in others.similar(one) if _alike(one, other)),
            key=lambda other: (one.words == other.words, other.server, other.tool),
            default=None,
        )
        if best is not None:
            found.append((one, best))
    owners = Counter(best.server for _, best in found)
    if (len(tools) > 2 and len(found) * 2 >= len(tools)) or (
        len(owners) == 1 and len(found) == len(tools) > 1
    ):
        yield found[0][0], Hit("names.same-server", "note")
        return
    for one, best in found:
        whole = len(best.words - one.words) <= 1
        more = whole and (one.words - best.words or (best.parameters and one.parameters - best.parameters))
        yield one, Hit("names.near-copy", "risky" if more else "note")


def _alike(one: Described, other: Described) -> bool:
    if min(len(one.words), len(other.words)) < FEWEST_WORDS:
        return False
    common = len(one.words & other.words)
    return common >= _COPY * len(other.words) and common >= _COPY * 0.75 * len(one.words)
