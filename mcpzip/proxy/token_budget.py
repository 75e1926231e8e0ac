"""Lines about tools, within a budget of tokens (pure).

The rule: every tool is named before any is described, and what was found first is described best. So detail
is taken from the last tool first, and from all of them before any loses more; only the first ten are spared
until the others are bare names. Names that don't fit either are left out, from the last on.

    slack__send_message: Post a message to a channel. Threads work too [channel:string*, text:string*]
    slack__send_message: Post a message to a channel [channel:string*, text:string*]
    slack__send_message [channel:string*, text:string*]
    slack__send_message
"""

from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from mcpzip.model.entry import Entry
from mcpzip.model.sanitize import spaced
from mcpzip.model.signature import signature
from mcpzip.model.tokens import estimate
from mcpzip.proxy.metatools import READ_ONLY
from mcpzip.search import Hit

SPARED = 10
"""Tools that lose nothing as long as others can."""
ALSO = 3
"""Other servers' names for a tool that are shown."""


class ToolLine(NamedTuple):
    """text: without its line break. tokens: with it."""

    text: str
    tokens: int

    @classmethod
    def of(cls, text: str) -> "ToolLine":
        return cls(text, estimate(text) + 1)


_FORMS: tuple[Callable[[Entry], str], ...] = (
    signature,
    lambda entry: signature(entry, 160, 60),
    lambda entry: signature(entry, 120, 0),
    lambda entry: spaced(entry.name),
)
_NAME = len(_FORMS) - 1


@lru_cache(maxsize=4_096)
def _form(entry: Entry, form: int) -> ToolLine:
    """``entry`` in this form. Reading schemas is most of the work, and the same tools are found again."""
    return ToolLine.of(_FORMS[form](entry))


def fit_to_budget(
    hits: Sequence[Hit], budget: int, ours: Callable[[Entry], str | None], reads: Container[Entry] = ()
) -> list[ToolLine]:
    """A line for each of ``hits``, in ``budget`` tokens; for fewer of them, though always for the first, if
    not even their names fit.

    ours: the line of a tool that has a line of its own. reads: the tools that are marked as read-only.
    """

    def line(hit: Hit, form: int) -> ToolLine:
        found = _line(hit, form, ours)
        return ToolLine.of(f"{found.text} {READ_ONLY}") if hit.entry in reads else found

    lines = [line(hit, 0) for hit in hits]
    total = sum(line.tokens for line in lines)
    for places in (range(SPARED, len(hits)), range(min(SPARED, len(hits)))):
        for form, place in product(range(1, len(_FORMS)), reversed(places)):
            if total <= budget:
                return lines
            shorter = line(hits[place], form)
            if shorter.tokens < lines[place].tokens:
                total -= lines[place].tokens - shorter.tokens
                lines[place] = shorter
    while len(lines) > 1 and total > budget:
        total -= lines.pop().tokens
    return lines


def _line(hit: Hit, form: int, ours: Callable[[Entry], str | None]) -> ToolLine:
    own = ours(hit.entry)
    if own is not None:
        return ToolLine.of(own.partition(":")[0] if form == _NAME else own)
    line = _form(hit.entry, form)
    if not hit.also or form == _NAME:
        return line
    more = f" and {len(hit.also) - ALSO} more" if len(hit.also) > ALSO else ""
    return ToolLine.of(f"{line.text} (also on: {', '.join(map(spaced, hit.also[:ALSO]))}{more})")
