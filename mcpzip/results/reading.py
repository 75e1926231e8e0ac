"""Reading a part of a kept result: the arguments of a call of its handle, and what they select (pure).

The rule: what is shown are the bytes of the server, in their order. What doesn't fit is left out at the end,
and a note says how to read on.
"""

import json
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

import msgspec

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import KEPT_PIECES
from mcpzip.results.document import Document, at_path, read_result, shown, size_in_tokens
from mcpzip.results.excerpt import LETTERS, fitting
from mcpzip.results.paths import PathError, parse_path, written
from mcpzip.results.slices import UnreadableError, elements, kind_of, members
from mcpzip.wire import join_object, quote, unquote

PATH, GREP, LINES, HEAD, TAIL, CHARACTERS = "path", "grep", "lines", "head", "tail", "chars"
KEYS = (PATH, GREP, LINES, HEAD, TAIL, CHARACTERS)
GREP_LENGTH = 500
"""Characters of what ``grep`` looks for."""
_RANGES = (LINES, HEAD, TAIL, CHARACTERS)
_HOW = (
    'Write {"path": "items[0:20].title"}, {"grep": "timeout|refused"}, {"lines": "1-50"}, {"head": 20}, '
    '{"tail": 20} or {"chars": "1-2000"}; {} gives all of it.'
)
_RANGE = lazy_pattern(r"\s*([0-9]{1,9})?\s*(?:(-|:|\.\.|,)\s*([0-9]{1,9})?)?\s*")


class Part(NamedTuple):
    """A part of a result. text: of it. note: a sentence about it, or ""."""

    text: str
    note: str = ""


class _Unit(NamedTuple):
    """What is counted: lines of a text, elements of an array, or members of an object."""

    word: str
    opening: str = ""
    between: str = "\n"
    closing: str = ""


_UNITS = {
    "array": _Unit("elements", "[", ",", "]"),
    "object": _Unit("members", "{", ",", "}"),
    "text": _Unit("lines"),
}


class Shown(NamedTuple):
    """A part as a `CallToolResult` of its own: its text, and a note if there is one. tokens: of the part,
    about. tokens_of_all: of all of the result.
    """

    result: bytes
    tokens: int
    tokens_of_all: int


def read_kept(result: bytes, arguments: Mapping[str, bytes], tokens: int) -> Shown:
    """The part of ``result`` that ``arguments`` name. Raises InvalidArgumentsError."""
    try:
        document = read_result(result)
        part = read_part(document, arguments, tokens)
    except UnreadableError as error:
        raise InvalidArgumentsError(f"This part can't be read: {error}. {_HOW}") from error
    return Shown(_as_result(part), size_in_tokens(part.text), size_in_tokens(shown(document)))


def _as_result(part: Part) -> bytes:
    texts = [text for text in part if text] or [""]
    blocks = [join_object({"type": b'"text"', "text": quote(text)}) for text in texts]
    return join_object({"content": b"[%b]" % b",".join(blocks)})


def read_part(document: Document, arguments: Mapping[str, bytes], tokens: int) -> Part:
    """The part that ``arguments`` (members of a JSON object, as JSON texts) name, in so many ``tokens``.
    Raises InvalidArgumentsError, UnreadableError.
    """
    wrong = [key for key in arguments if key not in KEYS]
    ranges = [key for key in _RANGES if key in arguments]
    if wrong or len(ranges) > 1:
        what = f"no {wrong[0]!r}" if wrong else f"either {ranges[0]!r} or {ranges[1]!r}"
        raise InvalidArgumentsError(f"A kept result is read with {what}. {_HOW}")
    value, path, about = document.value, "", ""
    if PATH in arguments:
        value, path, about = _at_path(document, _text(arguments, PATH))
    kind = kind_of(value) if value else "string"
    if kind not in ("string", "array", "object"):
        return Part(_decoded(value), about)
    text = (unquote(value) if value else document.text) if kind == "string" else ""
    if CHARACTERS in arguments:
        return _characters(text or _decoded(value), _range(arguments, CHARACTERS), tokens, about)
    unit = _UNITS["text" if kind == "string" else kind]
    pieces = _pieces(text, value, kind)
    if len(pieces) > KEPT_PIECES:
        raise InvalidArgumentsError(f"It has more than {KEPT_PIECES:,} {unit.word}: use 'path' or 'chars'.")
    numbered = list(enumerate(pieces, 1))
    among = f"{len(pieces):,}"
    if GREP in arguments:
        numbered = _matching(numbered, _text(arguments, GREP))
        if not numbered:
            return Part("", f"None of the {among} {unit.word} matches.{about}")
        among = f"{len(numbered):,} matches in {among} {unit.word}"
    first, last = _bounds(arguments, ranges, len(numbered))
    return _fitted(numbered[first:last], unit, among, GREP in arguments, tokens, path, about)


def _at_path(document: Document, path: str) -> tuple[bytes, str, str]:
    """The value there, the path as written, and a sentence about it."""
    try:
        found, place = at_path(document, path)
    except PathError as error:
        raise InvalidArgumentsError(f"{error} {_HOW}" if not document.value else str(error)) from error
    missing = f" {found.missing:,} of the elements lack it." if found.missing else ""
    return found.value, place, missing


def _pieces(text: str, value: bytes, kind: str) -> list[str]:
    """What is counted, and one piece more than KEPT_PIECES if there are more."""
    if kind == "string":
        return text.split("\n", KEPT_PIECES + 1)
    if kind == "array":
        return list(map(_decoded, islice(elements(value), KEPT_PIECES + 1)))
    found = islice(members(value), KEPT_PIECES + 1)
    return [f"{_decoded(quote(key))}:{_decoded(each)}" for key, each in found]


def _matching(numbered: list[tuple[int, str]], pattern: str) -> list[tuple[int, str]]:
    """Those that have what ``pattern`` says: alternatives between ``|``, and ``*`` or ``.*`` for any text. In
    time that is linear in the text, for each alternative. Case counts only if there is a capital.
    """
    if not 0 < len(pattern) <= GREP_LENGTH:
        raise InvalidArgumentsError(f"'grep' takes 1 to {GREP_LENGTH} characters.")
    exact = pattern != pattern.lower()
    alternatives = [
        [word for word in each.replace(".*", "*").split("*") if word] for each in pattern.split("|")
    ]
    alternatives = [words for words in alternatives if words]
    if not alternatives:
        raise InvalidArgumentsError("'grep' has no letter to look for.")
    return [
        (number, piece) for number, piece in numbered if _has(piece if exact else piece.lower(), alternatives)
    ]


def _has(text: str, alternatives: list[list[str]]) -> bool:
    for words in alternatives:
        at = 0
        for word in words:
            at = text.find(word, at)
            if at < 0:
                break
            at += len(word)
        else:
            return True
    return False


def _bounds(arguments: Mapping[str, bytes], ranges: list[str], length: int) -> tuple[int, int]:
    """The first and the last, as offsets."""
    if not ranges:
        return 0, length
    if ranges[0] == LINES:
        first, last = _range(arguments, LINES)
        if first > length:
            raise InvalidArgumentsError(f"'lines' begins at {first:,}, and there are {length:,}.")
        return first - 1, min(last, length)
    number = _number(arguments, ranges[0])
    return (0, number) if ranges[0] == HEAD else (max(0, length - number), length)


def _fitted(
    chosen: list[tuple[int, str]],
    unit: _Unit,
    among: str,
    is_matched: bool,
    tokens: int,
    path: str,
    about: str,
) -> Part:
    """As many of ``chosen`` as fit, and what that leaves out. among: how many there are."""
    texts = [piece for _, piece in chosen]
    if unit.word == "lines" and is_matched:
        texts = [f"{number}: {piece}" for number, piece in chosen]
    fit = fitting(texts, tokens)
    if not fit and texts:
        number, piece = chosen[0]
        what = f"{unit.word[:-1].capitalize()} {number:,} alone has {len(piece):,} characters"
        place = _place(path, unit, number, piece)
        where = f'{{{place}"chars": "1-2000"}}'
        return Part(piece[: LETTERS * tokens], f"{what}; these are the first. Read on: {where}.{about}")
    text = unit.opening + unit.between.join(texts[:fit]) + unit.closing
    numbers = [number for number, _ in chosen[:fit]]
    more = ""
    if is_matched:
        if fit < len(chosen):
            more = " More don't fit: narrow it."
        found = "" if unit.word == "lines" else f" (numbers {', '.join(map(str, numbers[:50]))})"
        return Part(text, f"{fit:,} of {among}{found}.{more}{about}")
    if fit == len(chosen) and among == f"{fit:,}":  # it is all there
        return Part(text, about.strip())
    shown = f"{unit.word.capitalize()} {numbers[0]:,} to {numbers[-1]:,} of {among}." if numbers else ""
    if fit < len(chosen):
        last = chosen[-1][0]
        place = f'"path": {_decoded(quote(path))}, ' if path else ""
        more = f' Read on: {{{place}"lines": "{numbers[-1] + 1}-{last}"}}.'
    return Part(text, f"{shown}{more}{about}")


def _place(path: str, unit: _Unit, number: int, piece: str) -> str:
    """The member ``path`` of arguments that lead into one element or member; "" for a line."""
    if unit.word == "lines":
        return ""
    if unit.word == "members":
        key, _ = json.JSONDecoder().raw_decode(piece)
        inner = written((*parse_path(path), str(key)))
    else:
        inner = f"{path}[{number - 1}]"
    return f'"path": {_decoded(quote(inner))}, '


def _characters(text: str, bounds: tuple[int, int], tokens: int, about: str) -> Part:
    first, last = bounds
    if first > len(text):
        raise InvalidArgumentsError(f"'chars' begins at {first:,}, and there are {len(text):,}.")
    last = min(last, first - 1 + 4 * LETTERS * tokens)
    part = text[first - 1 : last]
    fit = len(part) if fitting([part], tokens) else LETTERS * tokens
    end = first - 1 + len(part[:fit])
    return Part(part[:fit], f"Characters {first:,} to {end:,} of {len(text):,}.{about}")


def _range(arguments: Mapping[str, bytes], key: str) -> tuple[int, int]:
    """The first and the last, from 1."""
    raw = arguments[key].strip()
    text = unquote(raw) if raw.startswith(b'"') else raw.decode(errors="replace").strip("[]")
    found = _RANGE.fullmatch(text)
    if found is None or not (found[1] or found[3]):
        raise InvalidArgumentsError(f'{key!r} is a range such as "1-50", from 1 on.')
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else (10**9 if found[2] else first)
    if not 1 <= first <= last:
        raise InvalidArgumentsError(f'{key!r} is a range such as "1-50", from 1 on.')
    return first, last


def _number(arguments: Mapping[str, bytes], key: str) -> int:
    try:
        number = msgspec.json.decode(arguments[key], type=int, strict=False)
    except msgspec.DecodeError:
        number = 0
    if number < 1:
        raise InvalidArgumentsError(f"{key!r} is a number, from 1 on.")
    return number


def _text(arguments: Mapping[str, bytes], key: str) -> str:
    try:
        return unquote(arguments[key])
    except ValueError as error:
        raise InvalidArgumentsError(f"{key!r} is not a text. {_HOW}") from error


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")
