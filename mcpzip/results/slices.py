"""The members and the elements of a JSON text, as slices of it (pure).

The rule: nothing is decoded but keys, so a value that is selected is the bytes that the server wrote, and a
text of many values takes no more memory than what is asked for.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from mcpzip.wire.json_iter import WHITESPACE, element_offsets, members_of
from mcpzip.wire.json_object import may_hold_surrogates, unquote, without_surrogates

MEMBERS = 100_000
"""Members of an object that are looked at."""


COUNTED, COUNTED_ONE_BY_ONE = 250_000, 100_000
"""Elements of an array that are counted at once, as far as the size of the first tells; and one by one, if it
seems to have more. To count at once takes 80 bytes of memory for each, and nothing else runs meanwhile.
"""
_SURELY = 1_000_000
"""Commas of an array whose elements are counted at once."""
_SAMPLE = 50


class UnreadableError(ValueError):
    """The text is no JSON of the kind that was expected."""


def kind_of(value: bytes) -> str:
    """``object``, ``array``, ``string``, ``number``, ``boolean`` or ``null``, by the first character."""
    first = value[:64].lstrip(WHITESPACE)[:1] or value.lstrip(WHITESPACE)[:1]
    names = {b"{": "object", b"[": "array", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
    return names.get(first, "number")


_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


def elements(value: bytes) -> Iterator[bytes]:
    """Yields the elements of an array. Raises UnreadableError where it stops being one."""
    done = 0
    try:
        try:
            for start, end in element_offsets(value):
                yield value[start:end]
                done += 1
        except msgspec.DecodeError:
            if not may_hold_surrogates(value):  # not looked for before: often only the first are wanted
                raise
            for start, end in islice(element_offsets(without_surrogates(value)), done, None):
                yield value[start:end]
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableError(str(error)) from error


def count_elements(value: bytes) -> int | None:
    """How many elements an array has; None for more than `COUNTED_ONE_BY_ONE`, if it seems to have more than
    `COUNTED`. Raises UnreadableError.
    """
    size = sum(1 + len(each) for each in islice(elements(value), _SAMPLE))
    if len(value) * _SAMPLE <= COUNTED * size and value.count(b",") < _SURELY:
        try:
            return len(_ELEMENTS.decode(value))
        except (msgspec.DecodeError, RecursionError):
            pass  # it may have surrogates
        try:
            return len(_ELEMENTS.decode(_readable(value)))
        except (msgspec.DecodeError, RecursionError) as error:
            raise UnreadableError(str(error)) from error
    number = sum(1 for _ in islice(elements(value), COUNTED_ONE_BY_ONE + 1))
    return number if number <= COUNTED_ONE_BY_ONE else None


def members(value: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the members of an object, in order, with duplicate keys. Raises UnreadableError where it stops
    being one, or after MEMBERS.
    """
    try:
        for member in members_of(_readable(value), MEMBERS):
            if member.end < 0:
                raise UnreadableError("the text ends inside a value")
            colon = value.rindex(b":", member.start, member.value)
            yield unquote(value[member.start : colon].strip(WHITESPACE)), value[member.value : member.end]
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)) from error


def _readable(value: bytes) -> bytes:
    """``value`` without escaped lone surrogates, which msgspec refuses; all offsets are the same."""
    return without_surrogates(value) if may_hold_surrogates(value) else value
