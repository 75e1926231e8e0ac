"""What somebody else wrote, inside a sentence of ours (pure).

The rules: it stands in quotation marks, so that nobody takes it for ours; it is one line of printable
characters, so that it can forge none; it is cut at `limits.ECHO`; and no secret is in it. A name that is one
harmless word needs no marks and is whole, since somebody may want to use it. What passes to a client as a
server's own words never comes through here.
"""

from collections.abc import Iterable

from mcpzip.model.limits import ECHO
from mcpzip.model.redaction import redact
from mcpzip.model.sanitize import spaced

_AMPLE = 20
"""How many times the limit is looked at, lest a long text take long."""
_EDGE = 500
"""Characters before such a cut that are left out too: a secret that was cut in two is not found again."""
_MARKS = str.maketrans({"“": '"', "”": '"'})


def quoted(text: str, limit: int = ECHO) -> str:
    """``text`` as a quotation. limit: characters that are shown of it."""
    return f"“{shortened(text, limit).translate(_MARKS)}”"


def named(name: str) -> str:
    """A foreign ``name`` in a sentence of ours: as it is if it is one harmless word, else as a quotation."""
    return name if len(name.split()) == 1 and one_line(name) == name else quoted(name)


def names(found: Iterable[str]) -> str:
    """Foreign names in a sentence of ours, one after another (`named`)."""
    return ", ".join(map(named, found))


def shortened(text: str, limit: int = ECHO) -> str:
    """``text`` on one line without its secrets, and cut with ``…`` after ``limit`` characters."""
    ample = limit * _AMPLE
    shown = redact(text[:ample])
    if len(text) > ample:
        shown = shown[:-_EDGE]
    shown = one_line(shown)
    if len(shown) > limit or len(text) > ample:
        return shown[: limit - 1] + "…"
    return shown


def one_line(text: str) -> str:
    """``text`` without line ends, control characters and what hides or reorders the text around it."""
    return " ".join(spaced(text).split())
