"""When a client's requests are begun: what comes alone, at once; what comes with more, in the next turn."""

import asyncio
import gc
import json
from collections import Counter

import pytest
from helpers.event_loop import outside_of_tasks
from helpers.session_client import INTERNAL_ERROR, STAMP, Json, Talk, Upstreams
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.workers import REQUESTER
from mcpzip.server.task_tracker import TaskTracker

CALLED = ("result", "later", "much later", "error", "defect", "never")


async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
    """Ends as the arguments say."""
    what = json.loads(arguments or b"{}").get("what")
    if what in ("later", "much later"):
        for _ in range(1 if what == "later" else 5):
            await asyncio.sleep(0)
    if what == "defect":
        raise ValueError(what)
    if what == "never":
        await asyncio.Event().wait()
    return b'{"content":[],"isError":%b}' % (b"true" if what == "error" else b"false")


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def call(id: int, what: str) -> bytes:
    params = {"name": "x", "arguments": {"what": what}}
    return line(id=id, method="tools/call", params=params)


def cancel(id: int) -> bytes:
    return line(method="notifications/cancelled", params={"requestId": id})


async def answers(chunks: list[bytes]) -> tuple[list[Json], Talk]:
    """What a session says to ``chunks``, which come from its client one after the other."""
    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    for chunk in chunks:
        await outside_of_tasks(lambda chunk=chunk: talk.session.receive(chunk))
    for _ in range(20):
        await asyncio.sleep(0)  # until all that ends has ended
    await talk.session.finish(0)
    return [json.loads(one) for one in talk.lines if one], talk


async def test_what_comes_alone_is_answered_at_once() -> None:
    talk = Talk(Upstreams(behave)).begun()
    said: list[Json] = []
    await outside_of_tasks(lambda: said.extend(talk.says(call(1, "result"))))
    assert [one["id"] for one in said] == [1]
    assert not talk.session.busy


async def test_whoever_waits_for_the_first_request_goes_on_before_it_is_begun() -> None:
    """Servers are listed from then on, and the request may wait for that. It was told of no tools."""
    log: list[str] = []

    async def note(arguments: bytes | None, exchange: Exchange) -> bytes:
        log.append("begun")
        return b'{"content":[]}'

    talk = Talk(Upstreams(note))

    async def wait() -> None:
        await talk.session.opened(60)
        log.append("opened")

    waits = asyncio.create_task(wait())
    await asyncio.sleep(0)
    first = {"name": "x", "_meta": STAMP}
    await outside_of_tasks(lambda: talk.calls(1, first))
    await talk.session.finish(1)
    await waits
    assert log == ["opened", "begun"]


async def test_a_defect_in_the_first_step_leaves_nobody_waiting() -> None:
    said, talk = await answers([call(1, "defect")])
    assert [(one["id"], one["error"]["code"]) for one in said] == [(1, INTERNAL_ERROR)]
    assert not talk.session.busy


async def test_what_comes_together_is_begun_when_all_is_read() -> None:
    talk = Talk(Upstreams(behave)).begun()
    begun: list[int] = []

    def receive() -> None:
        talk.session.receive(call(1, "result") + call(2, "result"))
        begun.append(len(talk.session._tasks._requests))

    await outside_of_tasks(receive)
    assert begun == [2]
    await talk.session.finish(1)


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([*CALLED, "cancel", "ping"]), st.integers(0, 3)), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_every_request_is_answered_once_or_cancelled(
    chunks: list[list[tuple[str, int]]], data: st.DataObject
) -> None:
    """However what the client sends is cut. Calls that are answered in their first step are so in order."""

    async def play() -> None:
        sent, ids, kinds, cancelled = [], 0, dict[int, str](), set[int]()
        for chunk in chunks:
            text = b""
            for what, back in chunk:
                if what == "cancel":
                    cancelled.add(ids - back)
                    text += cancel(ids - back)
                    continue
                ids += 1
                kinds[ids] = what
                text += line(id=ids, method="ping") if what == "ping" else call(ids, what)
            cut = data.draw(st.integers(0, len(text)))
            sent += [part for part in (text[:cut], text[cut:]) if part]
        said, talk = await answers(sent)
        times = Counter(one["id"] for one in said)
        assert set(times.values()) <= {1}
        for id, kind in kinds.items():
            if id not in cancelled:
                assert times[id] == (kind != "never")
        for one in said:
            assert ("error" in one) == (kinds[one["id"]] == "defect")
        immediate = [one["id"] for one in said if kinds[one["id"]] in ("result", "error", "defect")]
        assert immediate == sorted(immediate)
        assert not talk.session.busy
        assert (talk.session._calls, talk.session._tasks._requests) == ({}, {})
        assert talk.session._tasks._count_by_client == {}

    asyncio.run(play())


async def test_each_is_done_for_whoever_asks() -> None:
    """What one call sets in its context, neither the next nor the session sees."""
    seen: list[object] = []

    async def look(arguments: bytes | None, exchange: Exchange) -> bytes:
        seen.append(REQUESTER.get().key)
        REQUESTER.set(REQUESTER.get().__class__("another"))
        return b'{"content":[]}'

    talks = [Talk(Upstreams(look)).begun() for _ in range(2)]
    for talk in talks:
        talk.session._requester = REQUESTER.get().__class__(talk)
        for id in (1, 2):
            await outside_of_tasks(lambda one=talk, id=id: one.session.receive(call(id, "result")))
    assert seen == [talks[0], talks[0], talks[1], talks[1]]
    assert REQUESTER.get().key is None


async def test_what_comes_while_all_ends_is_not_begun(recwarn: pytest.WarningsRecorder) -> None:
    talk = Talk(Upstreams(behave)).begun()
    tasks: TaskTracker = talk.session._tasks
    await tasks.settle(0, 0)
    outcomes: list[object] = []
    exchange = Exchange(talk.session.client, b"1", b'{"name":"x"}')
    assert tasks.run("tools/call", exchange, outcomes.append) is None
    assert outcomes == [None]
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
