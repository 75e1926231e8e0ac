"""Batches of a client of 2025-03-26 on stdio: one array for one array (its `basic/index`, "Batching")."""

import asyncio
import json

import pytest
from helpers.session_client import HELLO, INVALID_REQUEST, PARSE_ERROR, Json, Talk, Upstreams, comes_true
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model import limits
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.tool_result import text_result
from mcpzip.wire import Batch, Invalid, Notification, Peer, Request, Role


def batch(*messages: object) -> bytes:
    return json.dumps(list(messages)).encode() + b"\n"


def request(id: object, method: str = "ping", **params: object) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})}


def call(id: object) -> Json:
    return request(id, "tools/call", name="x", arguments={})


def begun(version: str = "2025-03-26", proxy: Upstreams | None = None) -> Talk:
    talk = Talk(proxy)
    talk.modern = False
    answer = talk.asks("initialize", {**HELLO, "protocolVersion": version})
    assert answer["result"]["protocolVersion"] == version
    return talk


def test_what_is_known_at_once_is_answered_at_once() -> None:
    (answers,) = begun().says(batch(request(1), request("a"), request(2, "no/such")))
    assert [(each["id"], each.get("result"), "error" in each) for each in answers] == [
        (1, {}, False),
        ("a", {}, False),
        (2, None, True),
    ]


def test_where_nothing_is_asked_nothing_is_answered() -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    talk = begun()
    assert talk.says(batch(notice, notice, {"jsonrpc": "2.0", "id": 77, "result": {}})) == []
    talk.goes_on()


def test_a_batch_of_none_is_an_error() -> None:
    (answer,) = begun().says(b"[]\n")
    assert (answer["id"], answer["error"]["code"]) == (None, INVALID_REQUEST)


def test_a_batch_that_is_no_json_is_an_error() -> None:
    (answer,) = begun().says(b'[{"jsonrpc":"2.0","id":1,"method":"ping"},]\n')
    assert (answer["id"], answer["error"]["code"]) == (None, PARSE_ERROR)


def test_there_is_an_end_to_a_batch() -> None:
    talk = begun()
    (answer,) = talk.says(batch(*[request(number) for number in range(limits.BATCH + 1)]))
    assert (answer["id"], answer["error"]["code"]) == (None, INVALID_REQUEST)
    (answers,) = talk.says(batch(*[request(number) for number in range(limits.BATCH)]))
    assert len(answers) == limits.BATCH


def test_what_is_no_message_is_told_among_the_answers() -> None:
    (answers,) = begun().says(batch(1, [], request(1), request(1)))
    assert [each["id"] for each in answers] == [None, None, 1, None]
    assert [each.get("error", {}).get("code") for each in answers] == [
        INVALID_REQUEST,
        INVALID_REQUEST,
        None,
        INVALID_REQUEST,
    ]


def test_nothing_is_begun_anew_in_a_batch() -> None:
    (answers,) = begun().says(batch(request(1, "initialize", **HELLO), request(2)))
    assert [each.get("error", {}).get("code") for each in answers] == [INVALID_REQUEST, None]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_other_versions_have_none(version: str) -> None:
    talk = begun(version)
    (answer,) = talk.says(batch(request(1)))
    assert (answer["id"], answer["error"]["code"]) == (None, INVALID_REQUEST)
    talk.goes_on()


async def test_calls_of_a_batch_run_beside_each_other_and_are_answered_together() -> None:
    begun_calls, go_on = list[bytes](), asyncio.Event()

    async def waiting(arguments: bytes | None, exchange: Exchange) -> bytes:
        begun_calls.append(exchange.id)
        await go_on.wait()
        return b'{"content":[]}'

    talk = begun(proxy=Upstreams(waiting))
    assert talk.says(batch(call(1), call(2), request(3))) == []
    await comes_true(lambda: len(begun_calls) == 2)
    assert talk.says(batch(request(4)))[0][0]["id"] == 4  # nobody waits for them
    talk.cancels(1)
    go_on.set()
    await comes_true(lambda: len(talk.lines) == 3)
    assert sorted(each["id"] for each in json.loads(talk.lines[-1])) == [2, 3]


async def test_a_batch_of_which_all_was_cancelled_is_not_answered() -> None:
    ended = list[bytes]()

    async def waiting(arguments: bytes | None, exchange: Exchange) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(exchange.id)
        raise AssertionError

    talk = begun(proxy=Upstreams(waiting))
    before = len(talk.lines)
    talk.session.receive(batch(call(1), call(2)))
    await asyncio.sleep(0)
    cancelled = [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        for number in (1, 2)
    ]
    talk.session.receive(batch(*cancelled))
    await comes_true(lambda: len(ended) == 2)
    await asyncio.sleep(0)
    assert [line for line in talk.lines[before:] if line] == []


@given(st.lists(st.sampled_from([request(1), request(2), {"jsonrpc": "2.0", "method": "n"}, 7]), max_size=8))
def test_a_batch_is_its_messages_one_by_one(messages: list[object]) -> None:
    whole, single = (Peer(role=Role.SERVER) for _ in range(2))
    whole.batches = True
    (event,) = whole.receive(batch(*messages))
    one_by_one = [single.message(json.dumps(each).encode()) for each in messages]
    if messages:
        assert event == Batch(tuple(one_by_one))
        assert {type(each) for each in one_by_one} <= {Request, Notification, Invalid}
    else:
        assert isinstance(event, Invalid)


@given(st.binary(max_size=40))
def test_no_batch_raises(data: bytes) -> None:
    peer = Peer(role=Role.SERVER)
    peer.batches = True
    peer.receive(b"[" + data.replace(b"\n", b"") + b"\n")
    peer.message(b" [" + data)


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_the_session_is_busy_until_the_answers_are_sent(turns: int) -> None:
    """A daemon hands a client over when its session isn't busy: what is not answered then runs elsewhere."""

    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        for _ in range(turns):
            await asyncio.sleep(0)
        return text_result("done")

    talk = begun(proxy=Upstreams(behave))
    del talk.lines[:]
    talk.session.receive(batch(call(1), call(2)))
    talk.session.receive(batch(call(3)))
    for _ in range(turns + 20):
        if not talk.session.busy:
            break
        await asyncio.sleep(0)
    assert not talk.session.busy
    assert sorted(len(json.loads(line)) for line in talk.lines) == [1, 2]
