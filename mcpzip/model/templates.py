"""Matches a URI against a URI template (RFC 6570), to find the server that has it (pure).

Both are untrusted, so the work is at most the product of their lengths, which are limited. A regular
expression built from the template could take exponential time.

    matches("file:///{+path}", "file:///a/b")      True: reserved expansion may contain slashes
    matches("note://{id}/text", "note://7/8/text") False: simple expansion may not
"""

from typing import NamedTuple

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import URI

MAX_EXPRESSIONS = 64
"""A template with more matches nothing."""


class _Expansion(NamedTuple):
    """prefix: the text before its values. stop: the characters that its values can't contain."""

    prefix: str
    stop: str


_EXPANSIONS = {
    "+": _Expansion("", ""),
    "#": _Expansion("#", ""),
    ".": _Expansion(".", "/?#"),
    "/": _Expansion("/", "?#"),
    ";": _Expansion(";", "/?#"),
    "?": _Expansion("?", "#"),
    "&": _Expansion("&", "#"),
}
"""By the operator of the expression (RFC 6570, 3.2)."""
_SIMPLE = _Expansion("", "/?#")

_EXPRESSION = lazy_pattern(r"\{([^{}]*)\}")


def matches(template: str, uri: str) -> bool:
    """Whether ``uri`` is ``template`` with some values for its expressions."""
    parts = _EXPRESSION.split(template)
    if len(uri) > URI or len(parts) // 2 > MAX_EXPRESSIONS:
        return False
    # Literals and expressions alternate. The offsets are those in the URI at which the next part may begin.
    offsets = {0}
    for number, part in enumerate(parts):
        if number % 2:
            offsets |= _after_values(_EXPANSIONS.get(part[:1], _SIMPLE), uri, offsets)
        else:
            offsets = {at + len(part) for at in offsets if uri.startswith(part, at)}
        if not offsets:
            return False
    return len(uri) in offsets


def _after_values(expansion: _Expansion, uri: str, offsets: set[int]) -> set[int]:
    """The offsets at which values that begin at ``offsets`` can end."""
    prefix = expansion.prefix
    reached: set[int] = set()
    for at in sorted(offsets):
        start = at + len(prefix)
        if uri.startswith(prefix, at) and start not in reached:
            stops = (found for stop in expansion.stop if (found := uri.find(stop, start)) >= 0)
            reached.update(range(start, min(stops, default=len(uri)) + 1))
    return reached
