"""What a value may be, in a few words: ``string``, ``open|closed``, ``(string|integer)[]`` (pure).

The rule: what is kept of the alternatives is no more than can be shown of them. However many values an enum
has, they come to a handful of words as soon as they are read.
"""

import re
from collections.abc import Iterable, Mapping

from mcpzip.model.quoting import one_line
from mcpzip.model.sanitize import spaced

Alternatives = dict[str, str]
"""What a value may be: text -> "" for a type, or for a literal the name of its type."""

ANY: Alternatives = {"any": ""}
_TOO_MANY: Alternatives = {"any": "", "…": ""}
"""More than can be shown; unlike `ANY` something that a schema does say."""

_LITERALS, _LITERAL_CHARACTERS = 6, 48
"""An enum is shown when it has no more values and no more characters than this; else only its type is."""
_MOST = _LITERALS + 6
"""Alternatives that are shown; of more none is."""
_MORE = "…" * (_LITERAL_CHARACTERS + 1)
"""Stands for literals that are too many, with the kind of the first."""
_LONGEST = 512
"""Characters of one value that are looked at: of this length it isn't shown."""

NEEDS_QUOTES = re.compile(r'[\s,:|*\[\]()"…]|^$')
_READS_AS_OTHER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_KINDS: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def quoted(text: str) -> str:
    """``text`` as a JSON string, on one line."""
    return '"' + one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def type_name(name: str) -> Alternatives:
    """The type that a schema calls ``name``."""
    return {one_line(name[:_LONGEST])[:_LITERAL_CHARACTERS] or "any": ""}


def literals(values: Iterable[object]) -> Alternatives:
    """One of ``values``, which are JSON."""
    return _few(map(_literal, values))


def union(parts: Iterable[Alternatives]) -> Alternatives:
    """One of ``parts``."""
    return _few(parts)


def shown(found: Alternatives) -> str:
    """``found`` as it is shown."""
    if not found:
        return "null"
    if _exceeds(text for text, kind in found.items() if kind):
        found = {kind or text: "" for text, kind in found.items()}
    return "|".join(found) if len(found) <= _MOST and "any" not in found else "any"


def _few(parts: Iterable[Alternatives]) -> Alternatives:
    """All of ``parts`` as one, less what `shown` leaves out whatever is added: of literals that are too
    many the kinds alone, of types that are too many nothing.
    """
    found: Alternatives = {}
    full = False
    for part in parts:
        for text, kind in part.items():
            if kind and full:
                if kind not in found and kind != found[_MORE]:
                    found[kind] = ""
                continue
            found[text] = kind
            if kind and _exceeds(each for each, its in found.items() if its):
                full, found = True, _kinds(found)
        if len(found) > _MOST and sum(not kind for kind in found.values()) > _MOST:
            return dict(_TOO_MANY)
    return found


def _kinds(found: Alternatives) -> Alternatives:
    """``found`` with its literals as one that is too long to be shown."""
    kinds: Alternatives = {}
    first = ""
    for text, kind in found.items():
        if kind and not first:
            kinds[_MORE] = first = kind
        elif kind != first or not kind:
            kinds.setdefault(kind or text, "")
    return kinds


def _exceeds(texts: Iterable[str]) -> bool:
    listed = list(texts)
    return len(listed) > _LITERALS or sum(map(len, listed)) > _LITERAL_CHARACTERS


def _literal(value: object) -> Alternatives:
    if isinstance(value, str):
        text = value[:_LONGEST]
        plain = not NEEDS_QUOTES.search(text) and not _READS_AS_OTHER.fullmatch(text)
        return {spaced(text) if plain else quoted(text): "string"}
    if isinstance(value, dict | list):
        return {_KINDS[type(value)]: ""}
    if value is None:
        return {}
    return {str(value).lower(): _KINDS.get(type(value), "any")}
