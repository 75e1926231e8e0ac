"""The events of a response: where a stream can be resumed, and whose turn it is while it comes."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.http import events as module
from mcpzip.http.events import Cursor, content_type, events, is_event_stream
from mcpzip.model import limits
from mcpzip.wire.content_coding import ContentCodingError
from mcpzip.wire.event_stream import EventReader, EventTooLongError, StreamEvent


class Pieces(httpx.AsyncByteStream):
    """A body that comes in these pieces, all at once. taken: how many were asked for."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.taken += 1
            yield piece


def response(*pieces: bytes, coding: str = "") -> httpx.Response:
    headers = {"content-encoding": coding} if coding else {}
    return httpx.Response(200, headers=headers, stream=Pieces(pieces))


async def read(*pieces: bytes) -> list[StreamEvent]:
    return [event async for event in events(response(*pieces))]


def noted(*lines: bytes) -> tuple[Cursor, str]:
    """A cursor after an event of ``lines``, and the type of that."""
    cursor = Cursor()
    (event,) = EventReader(1 << 20).feed(b"\n".join([*lines, b"", b""]))
    return cursor, cursor.note(event)


# ---- the cursor


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"data: x", "message"),
        (b"event: message", "message"),
        (b"event: endpoint", "endpoint"),
        (b"event:endpoint", "endpoint"),
        (b"event:  endpoint", " endpoint"),
        (b"event:", "message"),
        (b"event: \xff", "�"),
        (b"events: endpoint", "message"),
    ],
)
def test_an_event_is_of_the_type_it_says(line: bytes, kind: str) -> None:
    assert noted(line, b"data: x")[1] == kind


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b"id: 7", b"7"),
        (b"id:7", b"7"),
        (b"id: a b: c", b"a b: c"),
        (b"id: \xc3\xa9\xff", b"\xc3\xa9\xff"),
        (b"id:", b""),
        (b"id: " + b"x" * (limits.EVENT_FIELD - 4), b"x" * (limits.EVENT_FIELD - 4)),
    ],
)
def test_an_id_comes_back_as_it_was(line: bytes, id: bytes) -> None:
    assert noted(line, b"data: x")[0].id == id


@pytest.mark.parametrize(
    "line",
    [
        b"id: a\x00b",
        b"id: a\tb",
        b"id: a\x7f",
        b"id:  a",
        b"id: a ",
        b"id: \x1b[2J",
        b"id: " + b"x" * (limits.EVENT_FIELD - 3),
        b"ID: 7",
    ],
)
def test_an_id_that_fits_no_header_is_as_if_it_were_not_there(line: bytes) -> None:
    cursor = Cursor()
    cursor.id = b"before"
    for event in EventReader(1 << 20).feed(line + b"\ndata: x\n\n"):
        cursor.note(event)
    assert cursor.id == b"before"


@given(st.binary(max_size=12))
def test_any_id_that_is_kept_comes_out_of_a_header_as_it_was(value: bytes) -> None:
    cursor = Cursor()
    cursor.note(StreamEvent(b"", (b"id: " + value,)))
    sent = httpx.Headers([(b"Last-Event-ID", cursor.id)]).raw[0][1]
    assert cursor.id in (b"", value)
    assert sent.strip() == cursor.id
    assert b"\r" not in sent
    assert b"\n" not in sent
    assert b"\x00" not in sent


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"500", 0.5),
        (b"2000", 2.0),
        (b"0", limits.RETRY_SHORTEST),
        (b"1", limits.RETRY_SHORTEST),
        (b"9" * 18, limits.RETRY_LONGEST),
        (b"9" * 19, None),
        (b"-1", None),
        (b"1.5", None),
        (b"1e9", None),
        (b"soon", None),
        (b"", None),
        ("٣".encode(), None),
        ("²".encode(), None),
    ],
)
def test_a_wish_for_a_wait_is_granted_within_limits(value: bytes, seconds: float | None) -> None:
    assert noted(b"retry: " + value, b"data: x")[0].retry == seconds


def test_what_an_event_does_not_say_stays_as_it_was() -> None:
    cursor = Cursor()
    for event in EventReader(1000).feed(b"id: 7\nretry: 700\n\ndata: x\n\nevent: ping\nretry: never\n\n"):
        cursor.note(event)
    assert (cursor.id, cursor.retry) == (b"7", 0.7)


# ---- the media type


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("text/event-stream", "text/event-stream"),
        ("Text/Event-Stream; charset=utf-8", "text/event-stream"),
        ("text/event-stream;", "text/event-stream"),
        ("application/json;charset=x;y=text/event-stream", "application/json"),
        ("", ""),
        (None, ""),
    ],
)
def test_the_media_type_is_small_and_without_parameters(said: str | None, kind: str) -> None:
    made = httpx.Response(200, headers={} if said is None else {"content-type": said})
    assert content_type(made) == kind
    assert is_event_stream(made) == (kind == "text/event-stream")


# ---- the stream


async def test_events_come_out_as_they_stand_in_the_stream_however_it_is_cut() -> None:
    text = b"id: 1\ndata: a\ndata: b\n\n:ping\n\ndata: c\r\n\r\ndata: half"
    expected = [StreamEvent(b"a\nb", (b"id: 1",)), StreamEvent(b"c", ())]
    for size in (1, 2, 7, len(text)):
        assert await read(*(text[at : at + size] for at in range(0, len(text), size))) == expected


async def test_an_event_is_there_before_the_next_piece_is_asked_for() -> None:
    stream = Pieces([b"data: a\n\n", b"data: b\n\n"])
    reading = events(httpx.Response(200, stream=stream))
    assert (await anext(reading)).data == b"a"
    assert stream.taken == 1
    await reading.aclose()


async def test_an_event_that_is_too_long_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MESSAGE", 1000)
    fits = b"data:" + b"x" * 900 + b"\n\n"
    assert [len(event.data) for event in await read(fits * 3)] == [900] * 3
    endless = Pieces([fits, *[b"data: y\n"] * 10_000])
    reading = events(httpx.Response(200, stream=endless))
    assert len((await anext(reading)).data) == 900
    with pytest.raises(EventTooLongError) as caught:
        await anext(reading)
    assert caught.value.size_at_least == 1000
    assert endless.taken < 1000


async def test_a_stream_that_is_not_what_it_says_is_unfit() -> None:
    for coding in ("gzip", "br"):
        with pytest.raises(ContentCodingError):
            await anext(events(response(b"data: a\n\n", coding=coding)))


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: x\n\n" * 20_000],
        [b"data: x\n\n"] * 20_000,
        [b"\n" * 100_000],
        [b"data:\n" * 40_000],
        [b"x"] * 40_000,
        [b":\r" * 50_000],
        [b""] * 40_000,
    ],
    ids=["events", "small pieces", "empty lines", "lines of one event", "no line", "comments", "nothing"],
)
async def test_others_have_their_turn_while_a_stream_comes(pieces: list[bytes]) -> None:
    """A stream that never has to be waited for kept the event loop for as long as it went on.

    What holds no event is looked through 8 KiB at a time.
    """
    turns = 0
    done = False

    async def other() -> None:
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(other())
    async for _ in events(response(*pieces)):
        pass
    done = True
    await others
    assert turns >= 10
