"""Walks over the strings and numbers of a JSON text, with their offsets and paths (pure).

The rule: bytes that are not replaced must stay as they are, so nothing is decoded and written again. The walk
is tolerant: it accepts what a strict parser may refuse, such as escaped lone surrogates. It uses memory only
for the nesting, which is limited.
"""

import re
from collections.abc import Iterator, Sequence
from json import loads
from typing import NamedTuple

DEEPEST = 512
"""Maximum nesting of a text that is walked over. A deeper one counts as no JSON."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(
    rf"[ \t\r\n,]*+(?:(?P<string>{_STRING})(?P<colon>[ \t\r\n]*+:)?+"
    r"|(?P<number>-?[0-9][0-9.eE+-]*+)|(?P<open>[{\[])|(?P<close>[}\]])|true|false|null)",
    re.DOTALL,
)
_TAIL = re.compile(r"[ \t\r\n]*+")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_HIGH = re.compile(r"\\u[dD][89abAB]")


class Token(NamedTuple):
    """A string or number. start, stop: its offsets, of a string without the quotes. is_key: whether it is the
    name of a member. path: the names and indexes that lead to it, only valid until the next token.
    """

    start: int
    stop: int
    is_string: bool
    is_key: bool
    path: Sequence[str | int]


class NotJsonError(ValueError):
    """The text is no JSON."""


def tokens(text: str) -> Iterator[Token]:
    """Yields the strings and numbers of a JSON text, in order. Raises NotJsonError where it stops being one.

    Commas are not checked.
    """
    path: list[str | int] = []  # of each open container, the current name or index
    closers: list[str] = []
    at = 0
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            raise NotJsonError
        at = match.end()
        kind = match.lastgroup
        if kind == "colon":
            if not closers or closers[-1] != "}":
                raise NotJsonError
            start, stop = match.span("string")
            path[-1] = decoded(text[start + 1 : stop - 1])
            yield Token(start + 1, stop - 1, is_string=True, is_key=True, path=path)
            continue
        if kind == "close":
            if not closers or closers.pop() != match["close"]:
                raise NotJsonError
            path.pop()
            continue
        if closers and closers[-1] == "]":
            index = path[-1]
            path[-1] = index + 1 if isinstance(index, int) else 0
        if kind == "open":
            if len(closers) == DEEPEST:
                raise NotJsonError
            closers.append("}" if match["open"] == "{" else "]")
            path.append(-1)
        elif kind == "string":
            start, stop = match.span("string")
            yield Token(start + 1, stop - 1, is_string=True, is_key=False, path=path)
        elif kind == "number":
            yield Token(*match.span("number"), is_string=False, is_key=False, path=path)
    tail = _TAIL.match(text, at)
    if closers or at == 0 or tail is None or tail.end() != len(text):
        raise NotJsonError


def decoded(content: str) -> str:
    """The value of a string, given what is between its quotes."""
    if "\\" not in content:
        return content
    try:
        value = loads(f'"{content}"', strict=False)
    except ValueError:  # an invalid escape
        return content
    return value if isinstance(value, str) else content


def original_offsets(content: str, offsets: Sequence[int]) -> list[int]:
    """For ascending ``offsets`` in ``decoded(content)``, those in ``content``.

    An offset inside of a surrogate pair is that of the pair. Uses constant memory.
    """
    if "\\" not in content or decoded(content) is content:
        return list(offsets)
    found: list[int] = []
    value, original = 0, 0  # offsets of the same character
    wanted = iter(offsets)
    target = next(wanted, None)
    end = 0
    for match in _ESCAPE.finditer(content):
        start, stop = match.span()
        if start < end:
            continue  # the second half of a pair
        if _HIGH.match(match[0]) and _is_low(content[stop : stop + 6]):
            stop += 6
        while target is not None and target <= value + start - original:
            found.append(original + target - value)
            target = next(wanted, None)
        if target is None:
            return found
        value, original, end = value + start - original + 1, stop, stop
    while target is not None:
        found.append(original + target - value)
        target = next(wanted, None)
    return found


def _is_low(escape: str) -> bool:
    return len(escape) == len("\\udc00") and escape[:3] in ("\\ud", "\\uD") and escape[3] in "cdefCDEF"
