"""Whether a URI can come from a URI template (RFC 6570), as far as routing has to know.

The rule: a template comes from a server and a URI from a client, so the work is at most the product of their
lengths, and both are bounded; a regular expression made of a template could take for ever.

    matches("file:///{+path}", "file:///a/b")      True: reserved expansion goes across slashes
    matches("note://{id}/text", "note://7/8/text") False: simple expansion doesn't
"""

import re
from typing import NamedTuple

from mcpzip.model.limits import URI

MOST = 64
"""Expressions of a template that is compared."""


class _Expansion(NamedTuple):
    """lead: what its values begin with, if there are any. stop: the characters they can't have."""

    lead: str
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

_EXPRESSION = re.compile(r"\{([^{}]*)\}")


def matches(template: str, uri: str) -> bool:
    """Whether ``uri`` is ``template`` with some values in the place of its expressions."""
    pieces = _EXPRESSION.split(template)
    if len(uri) > URI or len(pieces) // 2 > MOST:
        return False
    # Literals and expressions take turns; of the URI's places those are kept that can have been come to.
    places = {0}
    for turn, piece in enumerate(pieces):
        if turn % 2:
            places |= _past_values(_EXPANSIONS.get(piece[:1], _SIMPLE), uri, places)
        else:
            places = {at + len(piece) for at in places if uri.startswith(piece, at)}
        if not places:
            return False
    return len(uri) in places


def _past_values(expansion: _Expansion, uri: str, places: set[int]) -> set[int]:
    lead = expansion.lead
    reached: set[int] = set()
    for at in sorted(places):
        if uri.startswith(lead, at) and at + len(lead) not in reached:
            reached.update(range(at + len(lead), _first(expansion.stop, uri, at + len(lead)) + 1))
    return reached


def _first(stop: str, uri: str, start: int) -> int:
    return min((at for each in stop if (at := uri.find(each, start)) >= 0), default=len(uri))
