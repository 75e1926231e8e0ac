"""What is told on one stream over HTTP: all of it, in order, whenever it was told."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.server.downstream import Outbox


class Stream:
    """Where notifications go. turns: for how many turns of the loop each of them takes."""

    def __init__(self, turns: list[int] | None = None) -> None:
        self.sent: list[str] = []
        self._turns = turns or []

    async def send(self, method: str, params: bytes | None) -> None:
        for _ in range(self._turns[len(self.sent) % len(self._turns)] if self._turns else 0):
            await asyncio.sleep(0)
        self.sent.append(method)


async def test_what_is_told_while_the_sender_ends_is_sent() -> None:
    # Once it waited for somebody to send it, and an answer overtook it: there was a task, but it had ended.
    stream = Stream()

    async def send(method: str, params: bytes | None) -> None:
        await stream.send(method, params)
        if method == "first":  # runs after the sender's last step, before anybody hears that it has ended
            asyncio.get_running_loop().call_soon(outbox.tell, "second", None)

    outbox = Outbox(send, 1000)
    outbox.tell("first", None)
    await outbox.flush()
    assert stream.sent == ["first", "second"]


@given(
    told_after=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    turns=st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_all_that_is_told_is_sent_in_order(told_after: list[int], turns: list[int]) -> None:
    """told_after: for each notification, the turns of the loop since the one before it."""

    async def play() -> None:
        stream = Stream(turns)
        outbox = Outbox(stream.send, 1000)
        for number, pause in enumerate(told_after):
            for _ in range(pause):
                await asyncio.sleep(0)
            outbox.tell(str(number), None)
        await outbox.finish()
        assert stream.sent == [str(number) for number in range(len(told_after))]

    asyncio.run(play())


async def test_what_is_too_much_is_dropped_and_a_broken_stream_is_left_alone() -> None:
    stream = Stream()
    outbox = Outbox(stream.send, 12)
    for method in ("ten-letter", "one-letter", "ab"):
        outbox.tell(method, None)
    await outbox.flush()
    assert stream.sent == ["ten-letter", "ab"]

    async def broken(method: str, params: bytes | None) -> None:
        stream.sent.append(method)
        raise ConnectionError

    outbox = Outbox(broken, 1000)
    outbox.tell("lost", None)
    outbox.tell("never", None)
    await outbox.flush()
    outbox.tell("later", None)
    await outbox.finish()
    assert stream.sent == ["ten-letter", "ab", "lost"]
