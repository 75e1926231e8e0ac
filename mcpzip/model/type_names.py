"""Short names for the types of a schema: ``string``, ``open|closed``, ``(string|integer)[]`` (pure).

Only as many alternatives are kept as can be shown, so a long enum takes little memory.
"""

from collections.abc import Iterable, Mapping

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.quoting import one_line
from mcpzip.model.sanitize import spaced

Alternatives = dict[str, str]
"""The alternatives for a value: type name -> "", or literal -> the name of its type."""

ANY: Alternatives = {"any": ""}
_TOO_MANY: Alternatives = {"any": "", "…": ""}
"""More than can be shown. Differs from `ANY`, which means that the schema states no type."""

_LITERALS, _LITERAL_CHARACTERS = 6, 48
"""Maximum values, and characters together, of an enum that is shown; of a larger one only the type is."""
_MOST = _LITERALS + 6
"""Maximum alternatives that are shown; more become ``any``."""
_MORE = "…" * (_LITERAL_CHARACTERS + 1)
"""Replaces literals that are too many, with the type of the first."""
_LONGEST = 512
"""Characters of one value that are processed; a value of this length isn't shown."""

NEEDS_QUOTES = lazy_pattern(r'[\s,:|*\[\]()"…]|^$')
_LOOKS_LIKE_OTHER_TYPE = lazy_pattern(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_KINDS: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def quoted(text: str) -> str:
    """``text`` as a JSON string, on one line."""
    return '"' + one_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def type_name(name: str) -> Alternatives:
    """The type with this ``name`` in a schema."""
    return {one_line(name[:_LONGEST])[:_LITERAL_CHARACTERS] or "any": ""}


def literals(values: Iterable[object]) -> Alternatives:
    """The alternatives of an enum with these JSON ``values``."""
    return union(map(_literal, values))


def shown(found: Alternatives) -> str:
    """The text for ``found``."""
    if not found:
        return "null"
    if _exceeds(text for text, kind in found.items() if kind):
        found = {kind or text: "" for text, kind in found.items()}
    return "|".join(found) if len(found) <= _MOST and "any" not in found else "any"


def union(parts: Iterable[Alternatives]) -> Alternatives:
    """All alternatives of ``parts``. If there are too many literals to show, only their types are kept; if
    there are too many types, none.
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
    """``found`` with its literals replaced by one that is too long to be shown, and their types."""
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
        plain = not NEEDS_QUOTES.search(text) and not _LOOKS_LIKE_OTHER_TYPE.fullmatch(text)
        return {spaced(text) if plain else quoted(text): "string"}
    if isinstance(value, dict | list):
        return {_KINDS[type(value)]: ""}
    if value is None:
        return {}
    return {str(value).lower(): _KINDS.get(type(value), "any")}
