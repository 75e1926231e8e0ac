"""A tool's signature on one line: what a model needs to choose the tool, and usually to call it (pure).

    slack__send_message: Send a Slack message [channel:string*, text:string*]

1. It is one line: whitespace and control characters become one space.
2. Required parameters come first, marked ``*``, and do not depend on the budget. Optional ones are omitted if
   they exceed it (``, … +3 more``). Both groups are sorted by name. The description is cut at a sentence, or
   at a word with ``…``.
3. No schema raises. An unreadable part (a cycle, a boolean, a broken reference) is ``any``.
4. The time is limited whatever the schema (`schema_reader`).

A tool without arguments has ``[]``; one that accepts any without naming them has ``[…]``.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import NAME, SIGNATURE
from mcpzip.model.quoting import one_line
from mcpzip.model.sanitize import spaced
from mcpzip.model.schema_reader import SchemaReader
from mcpzip.model.type_names import NEEDS_QUOTES, quoted

BUDGET = 240
"""Characters of a line, about 60 tokens. Only the name and the required parameters, which may have
`limits.SIGNATURE` characters, can exceed it."""

DESCRIPTION = 120
"""Characters of the budget that the description may use."""

_LEAST_DESCRIPTION = 40


def signature(entry: Entry, budget: int = BUDGET, description: int = DESCRIPTION) -> str:
    """The signature of ``entry``, of about ``budget`` characters.

    description: the maximum characters of the description in it; 0 omits it.
    """
    name = spaced(entry.name)
    params = _Parameters.of(_schema(entry))
    text = ""
    if description:
        room = min(description, budget - len(name) - len(params.text(0)) - 3)
        text = summary(entry.description or entry.title, max(room, min(description, _LEAST_DESCRIPTION)))
    head = f"{name}: {text} " if text else f"{name} "
    return head + params.text(budget - len(head))


def parameters(schema: object, budget: int | None = None) -> str:
    """The parameters of an ``inputSchema``: ``[channel:string*, limit:integer]``; all if budget is None."""
    return _Parameters.of(schema).text(budget)


def summary(text: str, budget: int = DESCRIPTION) -> str:
    """As many sentences of ``text`` as fit into ``budget`` characters, on one line, without the last full
    stop.

    If the first does not fit, it is cut at a word with ``…``. A blank line ends a sentence, and a heading
    such as ``Args:``, whose section repeats the schema, ends the text.
    """
    text = text.strip()[: 8 * budget]
    heading = _HEADING.search(text)
    if heading:
        text = text[: heading.start()]
    kept = ""
    for sentence in _sentences(text):
        if not kept:
            kept = sentence
            continue
        longer = f"{kept} {sentence}" if kept[-1] in _CLOSES else f"{kept}. {sentence}"
        if len(longer.removesuffix(".")) > budget:
            break
        kept = longer
    if kept[-1:] in {".", "。"} and not kept.endswith("..") and not _ABBREVIATED.search(kept):
        kept = kept[:-1]
    return kept if len(kept) <= budget else _cut(kept, budget)


# --- text ---------------------------------------------------------------------------------------------------

_HEADING = lazy_pattern(
    r"(?<=\S)\s*^[ \t#*]*(?:args|arguments|param(?:eter)?s|returns?|raises|examples?)[ \t*]*:[ \t*]*$",
    re.IGNORECASE | re.MULTILINE,
)
_PARAGRAPH = lazy_pattern(r"\n[ \t\r]*\n")
_END = lazy_pattern(r"[.!?؟۔।]+[\"'”’)\]]*\s+|[。！？．]+[」』”’）]*\s*")
_ABBREVIATED = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|max|min|no|dr|mr|mrs|ms|st|inc|ltd)|\b[a-z])\.$", re.IGNORECASE
)
_CLOSES = ".!?:;,…。！？．؟۔।\"'”’)]」』）"


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        line = one_line(paragraph)
        start = 0
        for end in _END.finditer(line):
            sentence, rest = line[start : end.end()].rstrip(), line[end.end() :]
            if rest[:1].islower() or (rest and _ABBREVIATED.search(sentence)):
                continue
            yield sentence
            start = end.end()
        if line[start:]:
            yield line[start:]


def _cut(text: str, budget: int) -> str:
    room = max(budget - 1, 1)
    head = text[:room]
    if not text[room : room + 1].isspace():
        words = head.rpartition(" ")[0]
        # A script without spaces, or one very long word, is cut inside.
        head = words if len(words) > room // 2 else head
    return head.rstrip(" ,;:-–—(") + "…"


# --- parameters ---------------------------------------------------------------------------------------------


class _Parameters(msgspec.Struct, frozen=True):
    required: tuple[str, ...]
    optional: tuple[str, ...]
    others: bool

    @classmethod
    def of(cls, schema: object) -> "_Parameters":
        reader = SchemaReader(schema)
        found = reader.members(schema)
        shown = {
            name: f"{_name(name)}:{reader.type(found.properties.get(name))}"
            for name in sorted(found.properties.keys() | found.required)
        }
        return cls(
            required=tuple(f"{part}*" for name, part in shown.items() if name in found.required),
            optional=tuple(part for name, part in shown.items() if name not in found.required),
            others=found.others,
        )

    def text(self, budget: int | None = None) -> str:
        parts = list(_first(self.required, SIGNATURE))
        free = len(self.optional) if budget is None else self._fitting(budget)
        free = free if len(parts) == len(self.required) else 0
        parts += self.optional[:free]
        if left := len(self.required) + len(self.optional) - len(parts):
            parts.append(f"… +{left} more")
        elif not parts and self.others:
            parts.append("…")
        return f"[{', '.join(parts)}]"

    def _fitting(self, budget: int) -> int:
        """How many optional parameters fit, with the count of the others."""
        used = 2 + sum(len(part) + 2 for part in self.required)
        best = 0
        for count, part in enumerate(self.optional, start=1):
            used += len(part) + 2
            left = len(self.optional) - count
            if used - 2 + (len(f", … +{left} more") if left else 0) <= budget:
                best = count
        return best


def _first(parts: tuple[str, ...], most: int) -> tuple[str, ...]:
    """As many of ``parts``, each with its comma, as fit into ``most`` characters."""
    lengths = accumulate(len(part) + 2 for part in parts)
    return parts[: bisect_right(list(lengths), most)]


@lru_cache(maxsize=1_024)
def _name(name: str) -> str:
    name = name if len(name) <= NAME else name[: NAME - 1] + "…"
    return quoted(name) if NEEDS_QUOTES.search(name) else spaced(name)


def _schema(entry: Entry) -> object:
    # The entry was parsed before, but a deep schema may need more stack than is left here.
    try:
        return entry.input_schema()
    except (msgspec.DecodeError, RecursionError):
        return {}
