"""Events of a stream, however it is cut, and how much of one is held."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.wire.event_stream import EventReader, EventTooLongError, StreamEvent

PARTS = (
    b"\r",
    b"\n",
    b"\r\n",
    b"data:",
    b"data: x",
    b"data",
    b"a",
    b" ",
    b":",
    b"id: 7",
    b"event: e",
    b"\n\n",
)
TEXT = st.lists(st.sampled_from(PARTS), max_size=14).map(b"".join)


def read(pieces: Iterable[bytes], most: int = 1000) -> list[StreamEvent]:
    reader = EventReader(most)
    return [event for piece in pieces for event in reader.feed(piece)]


def by_the_book(text: bytes) -> list[StreamEvent]:
    """HTML standard, 9.2.6, of what has an end."""
    found: list[StreamEvent] = []
    data: list[bytes] = []
    fields: dict[bytes, bytes] = {}
    for line in re.split(rb"\r\n|\n|\r", text)[:-1]:
        name, colon, value = line.partition(b":")
        if not line:
            if data or fields:
                found.append(StreamEvent(b"\n".join(data), tuple(fields.values())))
            data, fields = [], {}
        elif name == b"data":
            data.append(value.removeprefix(b" "))
        elif colon and name in (b"id", b"event", b"retry"):
            fields[name] = line
    return found


@given(TEXT, st.lists(st.integers(0, 40), max_size=5))
def test_events_are_those_of_the_standard_however_the_stream_is_cut(text: bytes, cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(at)]
    assert read(pieces) == by_the_book(text)


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert read([b"\xef\xbb\xbfdata: x\n\n"]) == [StreamEvent(b"x", ())]


@pytest.mark.parametrize(
    "line", [b"data: " + b"x" * 95, b"x" * 101, b":" + b"x" * 100, b"data: x\n" * 60, b"id: x\n" * 60]
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_an_event_is_dropped_while_it_comes_once_it_is_too_long(line: bytes, step: int) -> None:
    """An event, or a line, without an end was held without end."""
    text, fed = (line * 100)[:10_000], 0

    def pieces() -> Iterator[bytes]:
        nonlocal fed
        for at in range(0, len(text), step):
            fed += step
            yield text[at : at + step]

    with pytest.raises(EventTooLongError):
        read(pieces(), 100)
    assert fed <= max(800, step)


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_events_that_fit_come_without_end(step: int) -> None:
    text = (b": " + b"c" * 90 + b"\ndata: " + b"x" * 60 + b"\n\n") * 20
    assert len(read((text[at : at + step] for at in range(0, len(text), step)), 100)) == 20


def test_a_field_that_would_come_back_in_a_header_is_short() -> None:
    assert read([b"id: " + b"x" * 2000 + b"\ndata: x\n\n"], 10_000) == [StreamEvent(b"x", ())]
