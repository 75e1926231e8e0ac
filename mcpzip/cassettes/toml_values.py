"""Writes TOML values so that JSON text stays readable in them (pure).

A literal string ('…') has no escapes, so JSON text in it looks as it does on the wire. Basic strings ("…")
are used only for texts that a literal string can't hold.
"""

import re
from collections.abc import Mapping

from mcpzip.model.lazy_pattern import lazy_pattern

Value = str | int | float | bool | list["Value"] | tuple["Value", ...] | Mapping[str, "Value"]

_BARE_KEY = lazy_pattern(r"[A-Za-z0-9_-]+")
_NOT_LITERAL = lazy_pattern(
    r"[^\t\x20-\x7e\x80-\U0010ffff]|[\x80-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Controls, which TOML forbids or an editor hides; and those that change the direction of a text."""
_ESCAPED = lazy_pattern(r'[\x00-\x1f"\\\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def toml_value(value: Value) -> str:
    """``value`` as TOML on one line (TOML 1.0.0). Floats have at most 6 decimals. Raises ValueError for a
    text with lone surrogates, which TOML can't hold."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return toml_string(value)
        case int():
            return str(value)
        case float():
            return f"{value:.6f}".rstrip("0").removesuffix(".") if value % 1 else f"{value:.1f}"
        case Mapping():
            members = [f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items()]
            return f"{{ {', '.join(members)} }}"
        case _:
            return f"[{', '.join(toml_value(each) for each in value)}]"


def toml_key(key: str) -> str:
    """``key``, quoted if it must be."""
    return key if _BARE_KEY.fullmatch(key) else toml_string(key, triple=False)


def toml_string(text: str, *, triple: bool = True) -> str:
    """``text`` as a TOML string on one line. triple: whether it may have three quotes, which a key may not.
    Raises ValueError for lone surrogates.
    """
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ValueError("TOML can't hold lone surrogates")
    if not _NOT_LITERAL.search(text):
        if "'" not in text:
            return f"'{text}'" if '"' in text or "\\" in text else f'"{text}"'
        if "\\" not in text and '"' not in text:
            return f'"{text}"'
        if triple and "'''" not in text and not text.endswith("'"):
            return f"'''{text}'''"
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}"
