"""What is told on one stream over HTTP: all of it, in order, whenever it was told."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server.http import response as responses
from mcpzip.server.http.response import Header, HttpResponse
from mcpzip.server.http.send_queue import BATCH, FinalMessage, QueueBudget, SendQueue


def queue_of(size: int) -> SendQueue:
    """One in which so many bytes may wait."""
    return SendQueue(QueueBudget(size, size, 0))


class Channel:
    """Where a response goes. turns: for how many turns of the loop nothing more can be written after each
    piece of it."""

    mid_body = False

    def __init__(self, turns: list[int] | None = None) -> None:
        self.writable, self.ended = True, False
        self.response = HttpResponse(self)
        self.status, self.headers, self.body = 0, dict[bytes, bytes](), b""
        self.held_back: list[int] = []
        self.delivered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._turns, self._written = turns or [0], 0

    def start(self, status: int, headers: Sequence[Header], body: bytes, *, more: bool) -> None:
        assert not self.status
        self.status, self.headers = status, dict(headers)
        self.write(body, more=more)

    def write(self, body: bytes, *, more: bool) -> None:
        assert self.writable
        assert not self.ended
        self.body += body
        self.ended = not more
        self._stall(self._turns[self._written % len(self._turns)])
        self._written += 1

    def _stall(self, turns: int) -> None:
        self.writable = turns <= 0
        if not self.writable:
            asyncio.get_running_loop().call_soon(self._resume, turns - 1)

    def _resume(self, turns: int) -> None:
        self._stall(turns)
        if self.writable:
            self.response.pump()

    def hold_back(self, size: int) -> None:
        self.held_back.append(size)

    def failed(self, defect: Exception) -> None:
        raise defect

    def deliver(self, queue: SendQueue) -> "Channel":
        self.response.deliver(queue, self.delivered.set_result)
        return self

    async def done(self) -> bool:
        """Whether all was delivered, once that is known."""
        return await self.delivered

    @property
    def kind(self) -> bytes:
        return self.headers[b"content-type"]

    @property
    def messages(self) -> list[bytes]:
        return [line[6:] for line in self.body.split(b"\r\n") if line.startswith(b"data: ")]


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
        queue = queue_of(1000)
        channel = Channel(turns).deliver(queue)
        for number, pause in enumerate(told_after):
            for _ in range(pause):
                await asyncio.sleep(0)
            queue.put_if_room(b"%d\n" % number)
        for _ in range(answered_after):
            await asyncio.sleep(0)
        queue.finish(FinalMessage(b"answer\n", 404))
        queue.put_if_room(b"late\n")
        assert await channel.done()
        assert channel.ended
        if told_after:
            assert (channel.status, channel.kind) == (200, b"text/event-stream")
            assert channel.messages == [b"%d" % number for number in range(len(told_after))] + [b"answer"]
        else:
            assert (channel.status, channel.kind, channel.body) == (404, b"application/json", b"answer")

    asyncio.run(play())


async def test_what_is_too_much_is_dropped() -> None:
    queue = queue_of(12)
    for line in (b"ten-letter", b"one-letter", b"ab"):
        queue.put_if_room(line)
    queue.put(b"a question is not")
    assert queue.take() == [b"ten-letter", b"ab", b"a question is not"]
    queue.put_if_room(b"one-letter")  # there is room again
    assert queue.take() == [b"one-letter"]


async def test_what_a_slow_client_has_not_got_still_counts() -> None:
    queue = queue_of(4 * BATCH)
    lines = [b"%d" % number * BATCH for number in range(6)]
    for line in lines:
        queue.put_if_room(line)
    assert queue.take() == lines[:1]
    queue.put_if_room(lines[5])
    assert [queue.take() for _ in range(5)] == [[line] for line in (*lines[1:4], lines[5])] + [[]]


async def test_what_waits_for_all_has_a_limit_and_each_has_some_room_nevertheless() -> None:
    budget = QueueBudget(each=100, small=10, together=120)
    greedy, greedier, modest = SendQueue(budget), SendQueue(budget), SendQueue(budget)
    for _ in range(100):
        greedy.put_if_room(b"12345")
        greedier.put_if_room(b"12345")
    assert budget.taken == 120
    for _ in range(3):
        modest.put_if_room(b"12345")
    assert modest.take() == [b"12345"] * 2
    greedier.close()
    assert budget.taken == 60
    modest.put_if_room(b"1" * 30)
    assert modest.take() == [b"1" * 30]
    assert greedy.take() == [b"12345"] * 14
    assert budget.taken == 0


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("tprxc"), st.binary(min_size=1, max_size=30))),
    st.integers(0, 20),
)
def test_what_is_counted_for_all_is_what_waits(turns: list[tuple[int, str, bytes]], small: int) -> None:
    budget = QueueBudget(each=60, small=small, together=70)
    boxes = [SendQueue(budget) for _ in range(3)]
    for which, what, line in turns:
        box = boxes[which]
        match what:
            case "t":
                box.put_if_room(line)
            case "p":
                box.put(line)
            case "r":
                box.put_first([line])
            case "x":
                box.take()
            case _:
                box.close()
    waiting = [sum(map(len, box._waiting)) for box in boxes]
    assert budget.taken == sum(max(size - small, 0) for size in waiting)


async def test_what_can_not_be_written_yet_is_counted() -> None:
    queue = queue_of(1000)
    channel = Channel([2]).deliver(queue)
    queue.put(b"1")
    queue.finish(FinalMessage(b"x" * 500))
    assert channel.held_back[-1] == 500
    assert await channel.done()


async def test_a_client_that_left_is_noticed() -> None:
    for told in (False, True):
        queue = queue_of(1000)
        channel = Channel().deliver(queue)
        if told:
            queue.put_if_room(b"1")
        channel.response.client_left()
        assert not await channel.done()
        assert bool(channel.status) == told
        assert queue.reader is None


async def test_a_stream_that_is_closed_ends() -> None:
    queue = queue_of(1000)
    channel = Channel().deliver(queue)
    queue.close()
    queue.put(b"late")
    assert await channel.done()
    assert (channel.kind, channel.body, channel.ended) == (b"text/event-stream", b"", True)


async def test_silence_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "PING", 0.01)
    monkeypatch.setattr(responses.PLAIN_EVENTS, "patience", 0.01)
    queue = queue_of(1000)

    class Patient(Channel):
        def write(self, body: bytes, *, more: bool) -> None:
            super().write(body, more=more)
            if self.body.count(b": ping\r\n\r\n") == 2:
                queue.finish(FinalMessage(b"{}", 404))

    channel = Patient().deliver(queue)
    assert await channel.done()
    assert (channel.status, channel.messages) == (200, [b"{}"])


async def test_another_response_takes_over() -> None:
    queue = queue_of(1000)
    first = Channel().deliver(queue)
    queue.put(b"1")
    second = Channel().deliver(queue)
    queue.put(b"2")
    queue.finish(FinalMessage(b"3"))
    assert await second.done()
    assert (first.messages, first.ended, first.delivered.done()) == ([b"1"], True, False)
    assert second.messages == [b"2", b"3"]
