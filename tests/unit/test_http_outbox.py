"""What is told on one stream over HTTP: all of it, in order, whenever it was told."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server.http import reply as replies
from mcpzip.server.http.outbox import AT_ONCE, Answer, Outbox, Room
from mcpzip.server.http.reply import Reply


def outbox_of(size: int) -> Outbox:
    """One in which so many bytes may wait."""
    return Outbox(Room(size, size, 0))


class Wire:
    """Where a response goes. turns: for how many turns of the loop each piece of it takes; left: set once the
    client is gone."""

    def __init__(self, turns: list[int] | None = None) -> None:
        self.sent: list[MutableMapping[str, Any]] = []
        self.left = asyncio.Event()
        self._turns = turns or [0]

    async def send(self, message: MutableMapping[str, Any]) -> None:
        for _ in range(self._turns[len(self.sent) % len(self._turns)]):
            await asyncio.sleep(0)
        self.sent.append(message)

    async def receive(self) -> MutableMapping[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def kind(self) -> bytes:
        return dict(self.sent[0]["headers"])[b"content-type"]

    @property
    def body(self) -> bytes:
        return b"".join(each["body"] for each in self.sent[1:])

    @property
    def messages(self) -> list[bytes]:
        return [line[6:] for line in self.body.split(b"\r\n") if line.startswith(b"data: ")]

    @property
    def ended(self) -> bool:
        return self.sent[-1].get("more_body") is False


@given(
    told_after=st.lists(st.integers(0, 4), max_size=12),
    answered_after=st.integers(0, 4),
    turns=st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_all_that_is_told_is_sent_in_order(
    told_after: list[int], answered_after: int, turns: list[int]
) -> None:
    """told_after: for each notification, the turns of the loop since the one before it."""

    async def play() -> None:
        wire, outbox = Wire(turns), outbox_of(1000)
        delivering = asyncio.create_task(Reply(wire.send).deliver(outbox, wire.receive))
        for number, pause in enumerate(told_after):
            for _ in range(pause):
                await asyncio.sleep(0)
            outbox.tell(b"%d\n" % number)
        for _ in range(answered_after):
            await asyncio.sleep(0)
        outbox.finish(Answer(b"answer\n", 404))
        outbox.tell(b"late\n")
        assert await delivering
        assert wire.ended
        if told_after:
            assert (wire.status, wire.kind) == (200, b"text/event-stream")
            assert wire.messages == [b"%d" % number for number in range(len(told_after))] + [b"answer"]
        else:
            assert (wire.status, wire.kind, wire.body) == (404, b"application/json", b"answer")

    asyncio.run(play())


async def test_what_is_too_much_is_dropped() -> None:
    outbox = outbox_of(12)
    for line in (b"ten-letter", b"one-letter", b"ab"):
        outbox.tell(line)
    outbox.put(b"a question is not")
    assert outbox.take() == [b"ten-letter", b"ab", b"a question is not"]
    outbox.tell(b"one-letter")  # there is room again
    assert outbox.take() == [b"one-letter"]


async def test_what_a_slow_client_has_not_got_still_counts() -> None:
    outbox = outbox_of(4 * AT_ONCE)
    lines = [b"%d" % number * AT_ONCE for number in range(6)]
    for line in lines:
        outbox.tell(line)
    assert outbox.take() == lines[:1]
    outbox.tell(lines[5])
    assert [outbox.take() for _ in range(5)] == [[line] for line in (*lines[1:4], lines[5])] + [[]]


async def test_what_waits_for_all_has_a_limit_and_each_has_some_room_nevertheless() -> None:
    room = Room(each=100, small=10, together=120)
    greedy, greedier, modest = Outbox(room), Outbox(room), Outbox(room)
    for _ in range(100):
        greedy.tell(b"12345")
        greedier.tell(b"12345")
    assert room.taken == 120
    for _ in range(3):
        modest.tell(b"12345")
    assert modest.take() == [b"12345"] * 2
    greedier.close()
    assert room.taken == 60
    modest.tell(b"1" * 30)
    assert modest.take() == [b"1" * 30]
    assert greedy.take() == [b"12345"] * 14
    assert room.taken == 0


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("tprxc"), st.binary(min_size=1, max_size=30))),
    st.integers(0, 20),
)
def test_what_is_counted_for_all_is_what_waits(turns: list[tuple[int, str, bytes]], small: int) -> None:
    room = Room(each=60, small=small, together=70)
    boxes = [Outbox(room) for _ in range(3)]
    for which, what, line in turns:
        box = boxes[which]
        match what:
            case "t":
                box.tell(line)
            case "p":
                box.put(line)
            case "r":
                box.repeat([line])
            case "x":
                box.take()
            case _:
                box.close()
    waiting = [sum(map(len, box._waiting)) for box in boxes]
    assert room.taken == sum(max(size - small, 0) for size in waiting)


async def test_a_client_that_left_is_noticed() -> None:
    for told in (False, True):
        wire, outbox = Wire(), outbox_of(1000)
        delivering = asyncio.create_task(Reply(wire.send).deliver(outbox, wire.receive))
        if told:
            outbox.tell(b"1")
        await asyncio.sleep(0)
        wire.left.set()
        assert not await delivering
        assert bool(wire.sent) == told


async def test_a_stream_that_is_closed_ends() -> None:
    wire, outbox = Wire(), outbox_of(1000)
    delivering = asyncio.create_task(Reply(wire.send).deliver(outbox, wire.receive))
    await asyncio.sleep(0)
    outbox.close()
    outbox.put(b"late")
    assert await delivering
    assert (wire.kind, wire.body, wire.ended) == (b"text/event-stream", b"", True)


async def test_silence_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "PING", 0.01)
    outbox = outbox_of(1000)

    class Patient(Wire):
        async def send(self, message: MutableMapping[str, Any]) -> None:
            await super().send(message)
            if self.body.count(b": ping\r\n\r\n") == 2:
                outbox.finish(Answer(b"{}", 404))

    wire = Patient()
    assert await Reply(wire.send).deliver(outbox, wire.receive)
    assert (wire.status, wire.messages) == (200, [b"{}"])
