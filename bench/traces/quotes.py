"""What a model read of a result, as far as it shows: the places of which it quotes later (pure).

The rule: a place of a result was read if SPAN characters from there on stand in a later answer of the model,
in its words or in a value of its arguments, and stood nowhere before in what the model was given or said.
Where a result repeats a text, each of its places counts: rather too many. What a model reads without quoting
it is not seen: too few.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import msgspec

from bench.traces.trace import Result, Trace
from mcpzip.results.document import Document, read_result, shown
from mcpzip.results.slices import UnreadableError

SPAN = 24
"""Characters."""
DIFFERENT = 6
"""Different characters that a span has at least: a line of dashes is no quotation."""
_ESCAPE = re.compile(
    r'\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|["\\/bfnrt])'
)


@dataclass(frozen=True)
class Reading:
    """A result as a model may read it. document: None if it can't be read as a `CallToolResult`. shown: its
    value as JSON, else its text. quoted: the offsets in ``shown`` from which the model quotes. spans: these
    quotations.
    """

    result: Result
    document: Document | None
    shown: str
    quoted: list[int] = field(default_factory=list)
    spans: list[str] = field(default_factory=list)


class Unescaped:
    """The text of a JSON value with its escapes decoded, for comparisons; offsets lead back."""

    def __init__(self, text: str, is_json: bool) -> None:
        pieces: list[str] = []
        self._from: list[int] = []
        at = 0
        for found in _ESCAPE.finditer(text) if is_json and "\\" in text else ():
            pieces += text[at : found.start()], _character(found[0])
            self._from += at, found.start()
            at = found.end()
        pieces.append(text[at:])
        self._from.append(at)
        self.text = "".join(pieces)
        self._to = [0, *accumulate(map(len, pieces))][:-1]

    def original(self, offset: int) -> int:
        """The offset in the original text of the character at ``offset``."""
        piece = bisect_right(self._to, offset) - 1
        return self._from[piece] + offset - self._to[piece]


def readings(trace: Trace, again: bool = False) -> list[list[Reading]]:
    """The results that each turn of ``trace`` gives, with the places that the model quotes later. again:
    what it was given before counts too, if the model has not said it itself.
    """
    later: dict[str, int] = {}
    """span -> the last turn whose answer has it"""
    for number, turn in enumerate(trace.turns):
        for text in [turn.said, *(leaf for call in turn.calls for leaf in leaves(call.arguments))]:
            later.update(dict.fromkeys(_spans(text), number))
    seen: set[str] = set()
    all_of_them: list[list[Reading]] = []
    for number, turn in enumerate(trace.turns):
        found = []
        for each in turn.given:
            if isinstance(each, Result):
                found.append(_reading(each, later, seen, number))
                seen.update(() if again else found[-1].spans)
            elif not again:
                seen.update(span for span in _spans(each) if span in later)
        all_of_them.append(found)
        for text in [turn.said, *(leaf for call in turn.calls for leaf in leaves(call.arguments))]:
            seen.update(_spans(text))
    return all_of_them


def leaves(arguments: str) -> list[str]:
    """The texts among the values of ``arguments`` (JSON text); itself if it is no JSON."""
    try:
        return list(_texts(msgspec.json.decode(arguments)))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return [arguments]


def document_of(result: Result) -> tuple[Document | None, str]:
    """What ``result`` is read as, and what of it a model reads."""
    try:
        document = read_result(result.raw)
    except UnreadableError:
        return None, result.raw.decode("utf-8", "replace")
    return document, shown(document)


def _reading(result: Result, later: dict[str, int], seen: set[str], number: int) -> Reading:
    document, text = document_of(result)
    plain = Unescaped(text, bool(document and document.value))
    reading = Reading(result, document, text)
    for offset, span in enumerate(_spans(plain.text)):
        if span in later and span not in seen and later[span] >= number and len(set(span)) >= DIFFERENT:
            reading.quoted.append(plain.original(offset))
            reading.spans.append(span)
    return reading


def _spans(text: str) -> Iterator[str]:
    return (text[start : start + SPAN] for start in range(len(text) - SPAN + 1))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)


def _character(escape: str) -> str:
    return str(msgspec.json.decode(f'"{escape}"')) if _is_pair_or_plain(escape) else "\ufffd"


def _is_pair_or_plain(escape: str) -> bool:
    return len(escape) != 6 or not "d800" <= escape[2:].lower() <= "dfff"
