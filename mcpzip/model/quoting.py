"""Quotes text of servers and clients in our own sentences.

A quotation is in quotation marks, on one line of printable characters so that it can't imitate a message of
ours, cut at `limits.ECHO`, and without the secrets of `redaction` (so the result depends on its register). A
name of one harmless word is shown whole and without quotation marks, because the reader may need to type it.
Results that pass to a client are not changed here.
"""

from collections.abc import Iterable

from mcpzip.model.limits import ECHO
from mcpzip.model.redaction import redact
from mcpzip.model.sanitize import spaced

_EXAMINED = 20
"""Only this many times the limit is processed, because a text may be long."""
_EDGE = 500
"""Characters before that cut that are dropped too, because a secret that is cut in two is not found."""
_QUOTATION_MARKS = str.maketrans({"“": '"', "”": '"'})


def quoted(text: str, limit: int = ECHO) -> str:
    """``text`` in quotation marks. limit: the maximum of characters between them."""
    return f"“{shortened(text, limit).translate(_QUOTATION_MARKS)}”"


def named(name: str) -> str:
    """``name`` if it is one harmless word, else ``name`` as a quotation."""
    return name if len(name.split()) == 1 and one_line(name) == name else quoted(name)


def names(found: Iterable[str]) -> str:
    """The names, as of `named`, separated by commas."""
    return ", ".join(map(named, found))


def shortened(text: str, limit: int = ECHO) -> str:
    """``text`` on one line without secrets, cut with ``…`` after ``limit`` characters."""
    examined = limit * _EXAMINED
    shown = redact(text[:examined])
    if len(text) > examined:
        shown = shown[:-_EDGE]
    shown = one_line(shown)
    if len(shown) > limit or len(text) > examined:
        return shown[: limit - 1] + "…"
    return shown


def one_line(text: str) -> str:
    """``text`` without line breaks, control characters, and characters that hide or reorder others."""
    return " ".join(spaced(text).split())
