"""Finds known secrets in a text, in the encodings in which they may return (pure)."""

import re
from collections.abc import Iterator
from json import loads
from typing import NamedTuple

from mcpzip.cassettes.secret_names import is_mask, suspicion
from mcpzip.cassettes.secret_texts import find_secrets
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.redaction import SHORTEST, encodings, is_ordinary, pairs, secret_lines
from mcpzip.model.unescape import unescaped

REMEMBERED = 256
"""Found secrets that are searched by their value. With more, that which was found longest ago is not."""
GIVEN = 2_000
"""Given secrets. Further ones are ignored."""
_LONGEST = 16 * 1024
"""Characters of a secret that is searched by its value."""
_WINDOW = 256 * 1024
"""Characters that are unescaped at once, at most."""
_WORD = lazy_pattern(r"[A-Za-z]{1,24}")
_NUMBER = lazy_pattern(r"[\d.,:/ -]{1,10}", re.ASCII)
_SAFE = lazy_pattern(r"[A-Za-z0-9_.,:;=+*!?@#$()\[\]{}|~^ -]*", re.ASCII)
"""What is escaped only by those who escape everything."""
_RARE_ESCAPE = lazy_pattern(
    r"\\(?:u\{?0{0,4}[2-7]|x[2-7]|U000000[2-7])|%(?:u00)?[2-7][0-9A-Fa-f]|&(?:#|[A-Za-z]{2,31};)"
)
"""What becomes a printable character of ASCII."""
_ANY_ESCAPE = lazy_pattern(r"\\[\S]|%[0-9A-Fau]|&[#A-Za-z]")
_SCHEMES = ("bearer ", "basic ", "token ", "apikey ", "api-key ", "key ", "dpop ")


class Hit(NamedTuple):
    """A secret in a text, at these offsets."""

    start: int
    stop: int
    secret: str
    why: str


class KnownSecrets:
    """A set of secrets, each with the reason why it is one."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._remembered: dict[str, str] = {}  # oldest first
        self._encodings: dict[str, tuple[str, ...]] = {}  # by secret
        self._is_safe = True
        self._longest = SHORTEST

    def give(self, value: str, why: str) -> None:
        """Adds a secret, and the secrets in it: its lines, those of a connection string or a JSON object."""
        for text in dict.fromkeys(_parts(value)):
            if len(text) >= SHORTEST and text not in self._given and len(self._given) < GIVEN:
                self._given[text] = why
                self._add(text)

    def remember(self, value: str, why: str, *, asked: bool = False) -> None:
        """Adds a secret that was found, unless its value may well stand for something else. asked: whether a
        person said that it is one: then only single words stand for something else."""
        if value in self._given or not SHORTEST <= len(value) <= _LONGEST or is_mask(value):
            return
        if _WORD.fullmatch(value) or (not asked and (is_ordinary(value) or _NUMBER.fullmatch(value))):
            return
        self._remembered[value] = why
        self._add(value)
        if len(self._remembered) > REMEMBERED:
            oldest = next(iter(self._remembered))
            del self._remembered[oldest], self._encodings[oldest]

    def _add(self, secret: str) -> None:
        self._encodings[secret] = encodings(secret)
        self._is_safe = self._is_safe and _SAFE.fullmatch(secret) is not None
        self._longest = max(self._longest, len(secret))

    def find(self, text: str) -> Iterator[Hit]:
        """Yields the known secrets in ``text``, and what looks like one; also where they are hidden
        by escapes of JSON, programming languages, URLs or HTML."""
        yield from self._plain(text)
        for start, stop in self._escaped_windows(text):
            for plain, offsets in unescaped(text[start:stop]):
                for hit in self._plain(plain):
                    yield hit._replace(start=start + offsets[hit.start], stop=start + offsets[hit.stop])

    def _plain(self, text: str) -> Iterator[Hit]:
        for secret, spellings in self._encodings.items():
            for spelling in spellings:
                at = text.find(spelling)
                if at >= 0:
                    why = self._given.get(secret) or self._remembered[secret]
                    yield from _all(text, spelling, at, secret, why)
        for start, stop, why in find_secrets(text):
            yield Hit(start, stop, text[start:stop], why)

    def _escaped_windows(self, text: str) -> Iterator[tuple[int, int]]:
        """The parts of ``text`` in which escapes may hide a secret."""
        around = min(8 * self._longest + 64, _WINDOW // 4)
        begin = end = -1
        for match in (_RARE_ESCAPE if self._is_safe else _ANY_ESCAPE).finditer(text):
            at = match.start()
            if begin >= 0 and at + around - begin <= _WINDOW and at - around <= end:
                end = at + around
                continue
            if begin >= 0:
                yield begin, min(end, len(text))
            begin, end = max(0, at - around), at + around
        if begin >= 0:
            yield begin, min(end, len(text))


def _all(text: str, spelling: str, at: int, secret: str, why: str) -> Iterator[Hit]:
    """All places, those that overlap as one."""
    start, stop = at, at + len(spelling)
    while (at := text.find(spelling, at + 1)) >= 0:
        if at >= stop:
            yield Hit(start, stop, secret, why)
            start = at
        stop = at + len(spelling)
    yield Hit(start, stop, secret, why)


def _parts(value: str) -> Iterator[str]:
    value = value.strip()
    yield value
    yield from secret_lines(value)
    lowered = value[:16].lower()
    for scheme in _SCHEMES:
        if lowered.startswith(scheme):
            yield value[len(scheme) :].strip()
    yield from (value[found.start : found.stop] for found in find_secrets(value))
    if "=" in value:
        yield from (held for name, held in pairs(value) if suspicion(name) and not is_ordinary(held))
    if value[:1] in ("{", "["):
        try:
            yield from _strings(loads(value))
        except (ValueError, RecursionError):
            return


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str):
                if suspicion(name) and not is_ordinary(each):
                    yield from (each, *secret_lines(each))
            else:
                yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
