"""A tool on one line: what a model needs to choose it and, most of the time, to call it.

    slack__send_message: Send a Slack message [channel:string*, text:string*]

The rules:

1. One line, whatever the tool says: white space and control characters become one space.
2. Required parameters are always shown, marked ``*`` and first; each group goes by name. Optional ones give
   way to the budget (``, … +3 more``), and the description ends at a sentence, or else at a word with ``…``.
3. No schema raises. What can't be read (a cycle, a boolean, a reference that leads nowhere) is ``any``.

A tool that takes no arguments shows ``[]``; one that takes any, without naming them, shows ``[…]``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from mcpzip.model.entry import Entry

BUDGET = 240
"""Characters a line may take, about 60 tokens. Only its name and required parameters can make it longer."""

DESCRIPTION = 120
"""Characters of the budget the description may take."""

_LEAST_DESCRIPTION = 40
_LITERALS, _LITERAL_CHARACTERS = 6, 48
"""An enum is shown when it has no more values and no more characters than this; else only its type is."""

_ALTERNATIVES = 6
_DEPTH, _STEPS = 24, 2_000
"""How deep and how long one schema is read before the rest is ``any``: references can grow without end."""


def signature(entry: Entry, budget: int = BUDGET, description: int = DESCRIPTION) -> str:
    """The compact form of ``entry``: one line of about ``budget`` characters.

    description: how many of them what it does may take; 0 leaves that out.
    """
    name = printable(entry.name)
    names = _Parameters.of(_schema(entry))
    said = ""
    if description:
        room = min(description, budget - len(name) - len(names.text(0)) - 3)
        said = summary(entry.description or entry.title, max(room, min(description, _LEAST_DESCRIPTION)))
    head = f"{name}: {said} " if said else f"{name} "
    return head + names.text(budget - len(head))


def printable(text: str) -> str:
    """``text`` with a space for what would break a line, or hide or reorder the text around it."""
    return _UNPRINTABLE.sub(" ", text)


def parameters(schema: object, budget: int | None = None) -> str:
    """The bracket part for an ``inputSchema``: ``[channel:string*, limit:integer]``; whole if no budget."""
    return _Parameters.of(schema).text(budget)


def summary(text: str, budget: int = DESCRIPTION) -> str:
    """As many whole sentences of ``text`` as fit in ``budget`` characters, on one line, less the last full
    stop.

    When not even the first fits, its words that do and ``…``. A blank line ends a sentence, and a heading
    that only repeats the schema (``Args:``) ends the text.
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

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls, line breaks, and what hides or reorders the text around it."""

_HEADING = re.compile(
    r"(?<=\S)\s*^[ \t#*]*(?:args|arguments|param(?:eter)?s|returns?|raises|examples?)[ \t*]*:[ \t*]*$",
    re.IGNORECASE | re.MULTILINE,
)
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_END = re.compile(r"[.!?؟۔।]+[\"'”’)\]]*\s+|[。！？．]+[」』”’）]*\s*")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|max|min|no|dr|mr|mrs|ms|st|inc|ltd)|\b[a-z])\.$", re.IGNORECASE
)
_CLOSES = ".!?:;,…。！？．؟۔।\"'”’)]」』）"


def _one_line(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def _sentences(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(text):
        line = _one_line(paragraph)
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
        # A script without spaces, or one endless word, is cut where the room ends.
        head = words if len(words) > room // 2 else head
    return head.rstrip(" ,;:-–—(") + "…"


# --- parameters ---------------------------------------------------------------------------------------------

_NEEDS_QUOTES = re.compile(r'[\s,:|*\[\]()"…]|^$')
_READS_AS_OTHER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


@dataclass(frozen=True, slots=True)
class _Parameters:
    required: tuple[str, ...]
    optional: tuple[str, ...]
    others: bool

    @classmethod
    def of(cls, schema: object) -> "_Parameters":
        reader = _Reader(schema)
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
        parts = list(self.required)
        free = len(self.optional) if budget is None else self._fitting(budget)
        parts += self.optional[:free]
        if free < len(self.optional):
            parts.append(f"… +{len(self.optional) - free} more")
        elif not parts and self.others:
            parts.append("…")
        return f"[{', '.join(parts)}]"

    def _fitting(self, budget: int) -> int:
        """How many of the optional ones fit, with the note of what is left out."""
        used = 2 + sum(len(part) + 2 for part in self.required)
        best = 0
        for count, part in enumerate(self.optional, start=1):
            used += len(part) + 2
            left = len(self.optional) - count
            if used - 2 + (len(f", … +{left} more") if left else 0) <= budget:
                best = count
        return best


def _name(name: str) -> str:
    return _quoted(name) if _NEEDS_QUOTES.search(name) else _UNPRINTABLE.sub(" ", name)


def _quoted(text: str) -> str:
    return '"' + _one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- types --------------------------------------------------------------------------------------------------

_Alternatives = dict[str, str]
"""What a value may be: text -> "" for a type, or for a literal the name of its type."""

_ANY: _Alternatives = {"any": ""}


@dataclass(frozen=True, slots=True)
class _Members:
    """What an object schema says of its members. ``others``: it welcomes members it doesn't name."""

    properties: Mapping[str, object]
    required: frozenset[str]
    others: bool


class _Reader:
    """Reads one schema; ``root`` is where its references start. Gives up, as ``any``, after so many steps."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._steps = _STEPS

    def type(self, schema: object) -> str:
        """The type of one value: ``string``, ``string[]``, ``open|closed``, ``any``."""
        return _text(self._alternatives(schema, 0))

    def members(self, schema: object, depth: int = 0) -> _Members:
        """The members of an object schema, through references and combinations of schemas."""
        if not isinstance(schema, dict) or not self._may_read(depth):
            return _Members({}, frozenset(), False)
        own = _mapping(schema.get("properties"))
        required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
        # Draft 3, and many a hand-written schema: `required: true` inside the property.
        required |= {name for name, value in own.items() if _mapping(value).get("required") is True}
        extra = schema.get("additionalProperties")
        others = extra is True or (isinstance(extra, dict) and bool(extra))
        properties: dict[str, object] = {}
        parts = [self.members(part, depth + 1) for part in self._all_of(schema)]
        choices = [self.members(part, depth + 1) for part in _any_of(schema)]
        for part in parts:
            required |= part.required
        if choices:
            required |= frozenset.intersection(*(choice.required for choice in choices))
        for part in (*choices, *parts):
            properties.update(part.properties)
            others = others or part.others
        return _Members({**properties, **own}, frozenset(required), others)

    def _may_read(self, depth: int) -> bool:
        self._steps -= 1
        return self._steps > 0 and depth < _DEPTH

    def _alternatives(self, schema: object, depth: int) -> _Alternatives:
        if not isinstance(schema, dict) or not self._may_read(depth):
            return _ANY
        if "const" in schema:
            return _literals([schema["const"]])
        values = _list(schema.get("enum"))
        if values:
            return _literals(values)
        declared = schema.get("type")
        names = [name for name in [declared, *_list(declared)] if isinstance(name, str)]
        if names:
            return _union(self._named(name, schema, depth) for name in names)
        for part in self._all_of(schema):
            found = self._alternatives(part, depth + 1)
            if found != _ANY:
                return found
        choices = _any_of(schema)
        if choices:
            return _union(self._alternatives(choice, depth + 1) for choice in choices)
        if any(key in schema for key in ("properties", "additionalProperties", "patternProperties")):
            return {"object": ""}
        if "items" in schema or "prefixItems" in schema:
            return self._named("array", schema, depth)
        return _ANY

    def _named(self, name: str, schema: Mapping[str, object], depth: int) -> _Alternatives:
        if name == "null":
            return {}
        if name != "array":
            return {_one_line(name)[:_LITERAL_CHARACTERS] or "any": ""}
        items = schema.get("items")
        kinds = [*_list(schema.get("prefixItems")), *(items if isinstance(items, list) else [items])]
        kinds = [kind for kind in kinds if isinstance(kind, dict)] or [{}]
        inner = _text(_union(self._alternatives(kind, depth + 1) for kind in kinds))
        return {f"({inner})[]" if "|" in inner else f"{inner}[]": ""}

    def _all_of(self, schema: Mapping[str, object]) -> list[object]:
        """Every schema that holds besides this one's own keywords."""
        referenced = schema.get("$ref", schema.get("$dynamicRef"))
        target = [self._resolve(referenced)] if isinstance(referenced, str) else []
        return [*target, *_list(schema.get("allOf"))]

    def _resolve(self, reference: str) -> object:
        """What ``#/$defs/Issue`` (a JSON pointer, RFC 6901) or ``#issue`` points at; None for nothing."""
        if reference == "#":
            return self._root
        if not reference.startswith("#/"):
            return self._anchored(reference)
        place = self._root
        if "%" in reference:
            from urllib.parse import unquote  # seldom needed, and slow to import

            reference = unquote(reference)
        for step in reference[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict):
                place = place.get(key)
            elif isinstance(place, list) and key.isdecimal() and len(key) < 9 and int(key) < len(place):
                place = place[int(key)]
            else:
                return None
        return place

    def _anchored(self, reference: str) -> object:
        root = _mapping(self._root)
        for key in ("$defs", "definitions"):
            for schema in _mapping(root.get(key)).values():
                names = _mapping(schema)
                if names.get("$id") == reference or f"#{names.get('$anchor')}" == reference:
                    return schema
        return None


def _text(found: _Alternatives) -> str:
    if not found:
        return "null"
    literals = [text for text, kind in found.items() if kind]
    if len(literals) > _LITERALS or sum(map(len, literals)) > _LITERAL_CHARACTERS:
        found = {kind or text: "" for text, kind in found.items()}
    return "|".join(found) if len(found) <= _LITERALS + _ALTERNATIVES and "any" not in found else "any"


def _union(parts: Iterable[_Alternatives]) -> _Alternatives:
    merged: _Alternatives = {}
    for part in parts:
        merged.update(part)
    return merged


_KINDS: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def _literals(values: Iterable[object]) -> _Alternatives:
    found: _Alternatives = {}
    for value in values:
        if isinstance(value, str):
            plain = not _NEEDS_QUOTES.search(value) and not _READS_AS_OTHER.fullmatch(value)
            found[_UNPRINTABLE.sub(" ", value) if plain else _quoted(value)] = "string"
        elif isinstance(value, dict | list):
            found[_KINDS[type(value)]] = ""
        elif value is not None:
            kind = _KINDS.get(type(value), "any")
            found[str(value).lower()] = kind
    return found


def _any_of(schema: Mapping[str, object]) -> list[object]:
    return [*_list(schema.get("anyOf")), *_list(schema.get("oneOf"))]


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _schema(entry: Entry) -> object:
    # It parsed when the entry was made, but a deep schema may need more stack than this caller has left.
    try:
        return entry.input_schema()
    except (msgspec.DecodeError, RecursionError):
        return {}
