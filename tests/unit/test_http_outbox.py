"""What is told on one stream over HTTP: all of it, in order, whenever it was told."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server.http import reply as replies
from mcpzip.server.http.outbox import AT_ONCE, Answer, Outbox
from mcpzip.server.http.reply import Reply


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
        wire, outbox = Wire(turns), Outbox(1000)
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
    outbox = Outbox(12)
    for line in (b"ten-letter", b"one-letter", b"ab"):
        outbox.tell(line)
    outbox.put(b"a question is not")
    assert outbox.take() == [b"ten-letter", b"ab", b"a question is not"]
    outbox.tell(b"one-letter")  # there is room again
    assert outbox.take() == [b"one-letter"]


async def test_what_a_slow_client_has_not_got_still_counts() -> None:
    outbox = Outbox(4 * AT_ONCE)
    lines = [b"%d" % number * AT_ONCE for number in range(6)]
    for line in lines:
        outbox.tell(line)
    assert outbox.take() == lines[:1]
    outbox.tell(lines[5])
    assert [outbox.take() for _ in range(5)] == [[line] for line in (*lines[1:4], lines[5])] + [[]]


async def test_a_client_that_left_is_noticed() -> None:
    for told in (False, True):
        wire, outbox = Wire(), Outbox(1000)
        delivering = asyncio.create_task(Reply(wire.send).deliver(outbox, wire.receive))
        if told:
            outbox.tell(b"1")
        await asyncio.sleep(0)
        wire.left.set()
        assert not await delivering
        assert bool(wire.sent) == told


async def test_a_stream_that_is_closed_ends() -> None:
    wire, outbox = Wire(), Outbox(1000)
    delivering = asyncio.create_task(Reply(wire.send).deliver(outbox, wire.receive))
    await asyncio.sleep(0)
    outbox.close()
    outbox.put(b"late")
    assert await delivering
    assert (wire.kind, wire.body, wire.ended) == (b"text/event-stream", b"", True)


async def test_silence_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "PING", 0.01)
    outbox = Outbox(1000)

    class Patient(Wire):
        async def send(self, message: MutableMapping[str, Any]) -> None:
            await super().send(message)
            if self.body.count(b": ping\r\n\r\n") == 2:
                outbox.finish(Answer(b"{}", 404))

    wire = Patient()
    assert await Reply(wire.send).deliver(outbox, wire.receive)
    assert (wire.status, wire.messages) == (200, [b"{}"])
