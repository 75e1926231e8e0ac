"""A session whose new requests wait, so that another session can get them."""

import asyncio
import json

import pytest
from helpers.session_client import STAMP, Json, Talk, Upstreams, settled

from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.tool_result import text_result
from mcpzip.server import session


async def held(*, modern: bool = False) -> tuple[Talk, Upstreams, asyncio.Event]:
    """A client with one call under way, the event that ends it, and the session holding."""
    gate = asyncio.Event()

    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        if arguments == b"1":
            await gate.wait()
        return text_result(f"done {arguments!r}")

    proxy = Upstreams(behave)
    talk = Talk(proxy)
    talk = talk.begun_modern() if modern else talk.begun()
    del talk.lines[:]
    talk.calls(1, call(1, modern=modern))
    await asyncio.sleep(0)
    talk.session.hold()
    return talk, proxy, gate


def call(arguments: int, *, modern: bool = False, **more: object) -> Json:
    return {"name": "x", "arguments": arguments, **more, **({"_meta": STAMP} if modern else {})}


def ids(talk: Talk) -> list[object]:
    return [json.loads(line)["id"] for line in talk.lines]


async def test_new_requests_wait_and_those_under_way_are_answered() -> None:
    talk, proxy, gate = await held()
    talk.calls(2, call(2))
    assert talk.session.busy
    gate.set()
    await settled(talk, 1)
    await asyncio.sleep(0)
    assert not talk.session.busy
    assert (ids(talk), len(proxy.asked)) == ([1], 1)
    talk.session.release()
    await settled(talk, 2)
    assert (ids(talk), len(proxy.asked)) == ([1, 2], 2)


async def test_one_that_is_cancelled_meanwhile_never_runs() -> None:
    talk, proxy, gate = await held()
    talk.calls(2, call(2))
    talk.calls(3, call(3))
    talk.says(
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
    )
    talk.session.release()
    await settled(talk, 1)
    assert ids(talk) == [3]
    assert len(proxy.asked) == 2
    assert not gate.is_set()


async def test_the_end_of_the_input_has_all_answered() -> None:
    talk, _, gate = await held()
    talk.calls(2, call(2))
    gate.set()
    talk.session.end()
    await settled(talk, 2)
    assert sorted(map(str, ids(talk))) == ["1", "2"]


async def test_a_request_that_resumes_a_call_does_not_wait() -> None:
    talk, _, gate = await held(modern=True)
    talk.calls(2, call(2, modern=True))
    talk.calls(3, call(3, modern=True, requestState="mcpzip-x", inputResponses={}))
    await settled(talk, 1)
    assert ids(talk) == [3]
    gate.set()
    await settled(talk, 2)
    assert ids(talk) == [3, 1]


async def test_more_than_may_wait_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "HELD", 300)
    talk, _, gate = await held()
    for number in range(2, 10):
        talk.calls(number, call(number, note="y" * 50))
    await settled(talk, 8)
    assert not talk.session.holds
    assert ids(talk) == [*range(2, 10)]
    gate.set()
