"""Which of many items the checks may find something *hard* in, without running them on each (pure).

1. An item that is left out has no hard finding. One that is returned may have none either.
2. The items of a server repeat most of their strings. So each distinct string is searched once, and most
   phrases once in the words of all strings together.
3. An item with a string that isn't searched here (invisible characters, over `PIECE` characters) is returned.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import accumulate

from mcpzip.checks import encoded
from mcpzip.checks.confusables import is_lookalike
from mcpzip.checks.hidden import may_hide
from mcpzip.checks.instructions import RULES
from mcpzip.checks.texts import PIECE, folded, words_of_name
from mcpzip.model import limits
from mcpzip.model.surface import Item

_AT_ONCE = 1 << 21
"""Bytes of items that are searched at once, so that other threads wait for milliseconds at most."""
_MANY_BRACKETS = 400
"""Opening brackets of a text that may be nested too deep."""
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+"(?:\s*+:)?)', re.DOTALL)
"""A string in JSON without the quotation mark before it, with that after it, and the colon after a name."""
_NAME = re.compile(rb'"name"\s*+:\s*+"([^"\\]*+(?:\\.[^"\\]*+)*+")', re.DOTALL)
"""The value of a member called *name*, unless that is written with escapes."""
_SPACES = re.compile("  +")
_TURN = "assistant:"
"""It is in every imitation of a conversation (`instructions.fake_turns`)."""


def suspects(items: Sequence[Item]) -> list[Item]:
    """Those of ``items`` in which `check_items` may find something hard. The body of each is JSON."""
    found: list[Item] = []
    for part in _parts(items):
        strings = [_STRING.findall(item.body) for item in part]
        names: set[bytes] = set()
        for item, own in zip(part, strings, strict=True):
            names.update(own if b"\\u" in item.body else _NAME.findall(item.body))
        suspicious = _Strings(set().union(*strings), names).suspicious()
        found += [
            item
            for item, own in zip(part, strings, strict=True)
            if not suspicious.isdisjoint(own) or not item.name.isascii() or _may_be_unread(item.body)
        ]
    return found


def _may_be_unread(body: bytes) -> bool:
    """Whether an item with this body may be too long, or nested too deep, to be checked whole."""
    return len(body) > limits.CHECKED_TEXT or body.count(b"[") + body.count(b"{") > _MANY_BRACKETS


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    begin, size = 0, 0
    for at, item in enumerate(items):
        size += len(item.body)
        if size >= _AT_ONCE:
            yield items[begin : at + 1]
            begin, size = at + 1, 0
    yield items[begin:]


class _Strings:
    """Strings as `_STRING` finds them, and their texts, each on one line. An identifier has two texts: as it
    is, and its words.
    """

    def __init__(self, strings: Set[bytes], names: Set[bytes]) -> None:
        """names: those of ``strings`` that may be the value of a *name*."""
        self._unread: set[bytes] = set()
        self._originals: list[bytes] = []
        self._texts: list[str] = []
        for string in strings:
            is_identifier = string[-1:] == b":" or string in names
            text = _text(string, is_identifier)
            if text is None:
                self._unread.add(string)
                continue
            self._originals.append(string)
            self._texts.append(text)
            if is_identifier and (words := words_of_name(text)) != text:
                self._originals.append(string)
                self._texts.append(words)

    def suspicious(self) -> set[bytes]:
        """The strings in which a check may find something hard."""
        if not self._texts:
            return self._unread
        return self._unread | {self._originals[at] for at in self._with_code() | self._with_phrases()}

    def _with_code(self) -> set[int]:
        """The texts with what `encoded.encoded_text` calls hard."""
        urls = {at for at, text in enumerate(self._texts) if encoded.may_be_active_url(text)}
        words = set("\n".join(self._texts).split())
        coded = {word for word in words if len(word) >= encoded.SHORTEST and encoded.decodes_to_order(word)}
        if not coded:
            return urls
        return urls | {at for at, text in enumerate(self._texts) if not coded.isdisjoint(text.split())}

    def _with_phrases(self) -> set[int]:
        """The texts with what `instructions` calls hard: one hard phrase, or two kinds of risky ones."""
        lines = _SPACES.sub(" ", "\n".join(self._texts).lower()).split("\n")
        # A capital may look like a Latin letter whose small form doesn't, so these are folded as they are.
        lines = [
            line if text.isascii() else folded(text) for line, text in zip(lines, self._texts, strict=True)
        ]
        lines_with = _line_index(lines)
        found = set(lines_with(_TURN))
        risky: dict[int, str] = {}
        for rule in RULES.rules:
            for at in {at for word in rule.needs for at in lines_with(word)}:
                line = lines[at]
                if rule.also and not any(word in line for word in rule.also):
                    continue
                if next(rule.hits(line), None) is None:
                    continue
                if rule.severity == "hard" or risky.setdefault(at, rule.check) != rule.check:
                    found.add(at)
        return found


def _text(string: bytes, is_identifier: bool) -> str | None:
    """The text of ``string`` on one line; None if it has to be checked as it is."""
    raw = string[: string.rindex(b'"')]
    try:
        text: str = json.loads(b'"%b"' % raw) if b"\\" in raw else raw.decode()
    except ValueError:
        return None
    if len(text) > PIECE or may_hide(text) or (is_identifier and is_lookalike(text)):
        return None
    return text if text.isascii() and text.isprintable() else " ".join(text.split())


def _line_index(lines: list[str]) -> Callable[[str], list[int]]:
    """A function that finds the lines with a phrase."""
    text = "\n".join(lines)
    words = "\n".join(set(text.split()))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    known: dict[str, list[int]] = {}

    def lines_with(phrase: str) -> list[int]:
        found = known.get(phrase)
        if found is None:
            found = known[phrase] = []
            at = text.find(phrase) if max(phrase.split(), key=len) in words else -1
            while at != -1:
                line = bisect_right(starts, at) - 1
                found.append(line)
                at = text.find(phrase, starts[line + 1])
        return found

    return lines_with
