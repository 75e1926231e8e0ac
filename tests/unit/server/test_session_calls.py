"""A client's calls: concurrent, byte for byte, cancelled, with their progress."""

import asyncio
import gc
import json
from collections.abc import Callable
from typing import Any

import pytest
from helpers.session_client import (
    HELLO,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META,
    STAMP,
    Json,
    Talk,
    Upstreams,
    comes_true,
    settled,
)

from mcpzip.model.errors import (
    UnknownToolError,
)
from mcpzip.proxy.call import Call, UpstreamRequest
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.tool_result import text_result
from mcpzip.server.endpoint import Endpoint
from mcpzip.wire import RpcError, UpstreamRpcError


async def test_calls_run_at_the_same_time_and_are_answered_as_they_end() -> None:
    gates = {"1": asyncio.Event(), "2": asyncio.Event()}

    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        await gates[str(json.loads(arguments or b""))].wait()
        return text_result(f"done {arguments!r}")

    proxy = Upstreams(behave)
    talk = Talk(proxy).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x", "arguments": 1})
    talk.calls(2, {"name": "x", "arguments": 2})
    talk.goes_on()  # the reader waits for neither
    del talk.lines[:]
    gates["2"].set()
    await settled(talk, 1)
    gates["1"].set()
    await settled(talk, 2)
    assert [json.loads(line)["id"] for line in talk.lines] == [2, 1]


async def one_call(
    behave: Callable[[bytes | None, Exchange], Any] | None, params: Json, *, modern: bool = False
) -> Json:
    """The answer to one tools/call; nothing else is said."""
    talk = Talk(Upstreams(behave))
    talk = talk.begun_modern() if modern else talk.begun()
    del talk.lines[:]
    talk.calls("c", {**params, "_meta": STAMP} if modern else params)
    await settled(talk, 1)
    await talk.session.finish(1)
    (line,) = talk.lines
    return json.loads(line)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "name"),
        ({"name": 5}, "name"),
        ({"name": None}, "name"),
        ({"name": "no_such_tool"}, "search_tools"),
        ({"name": "shop__pay"}, "search_tools"),
    ],
)
async def test_a_call_that_names_no_tool_of_ours_is_an_error(params: Json, said: str) -> None:
    error = (await one_call(None, params))["error"]
    assert error["code"] == INVALID_PARAMS
    assert said in error["message"]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"name": "search_tools"}, "query"),
        ({"name": "search_tools", "arguments": None}, "'query' is missing"),
        ({"name": "search_tools", "arguments": {"query": None}}, "'query' is missing"),
        ({"name": "search_tools", "arguments": {"query": 5}}, "query"),
        ({"name": "search_tools", "arguments": {"query": "x", "limit": "many"}}, "limit"),
        ({"name": "search_tools", "arguments": ["x"]}, "search_tools"),
        ({"name": "describe_tool"}, "'name' is missing"),
        ({"name": "describe_tool", "arguments": None}, "'name' is missing"),
        ({"name": "describe_tool", "arguments": {"name": "shop__pay"}}, "no tool 'shop__pay'"),
        ({"name": "execute_tool", "arguments": {"name": "shop__pay"}}, "no tool 'shop__pay'"),
        ({"name": "execute_tool", "arguments": {"name": "proxy_status", "timeout": -1}}, "timeout"),
        ({"name": "execute_tool", "arguments": "{"}, "not a JSON object"),
    ],
)
async def test_wrong_arguments_are_told_to_the_model(params: Json, said: str) -> None:
    result = (await one_call(None, params))["result"]
    assert result["isError"] is True
    assert said in result["content"][0]["text"]


async def test_the_result_passes_byte_for_byte() -> None:
    odd = b'{"z":1.0,"content":[ ],"a":1e2,"z2":"\\ud800","big":12345678901234567890}'

    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        return odd

    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    await settled(talk, 1)
    assert talk.lines == [b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % odd]


async def test_a_modern_result_is_stamped_and_else_untouched() -> None:
    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        return b'{"resultType":"input_required","content":[],"_meta":{"x":1.50}}'

    answer = await one_call(behave, {"name": "x"}, modern=True)
    assert answer["result"]["resultType"] == "input_required"
    assert answer["result"]["_meta"]["x"] == 1.5
    assert answer["result"]["_meta"][f"{META}serverInfo"]["name"] == "mcpzip"


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"b":1.0,"a":1e5,"b2":[1,2 ,3]}',
        b'{"text":"\\ud800 cut"}',
        '{"ü":"\U0001f600"}'.encode(),
        b'"{}"',
        b"[1]",
        b"5",
    ],
)
async def test_arguments_pass_byte_for_byte(arguments: bytes) -> None:
    """Lone surrogates were refused as unreadable."""
    proxy = Upstreams(answering(b"{}"))
    talk = Talk(proxy).begun()
    talk.session.receive(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%b}}\n' % arguments
    )
    await talk.session.finish(1)
    assert [asked[1] for asked in proxy.asked] == [arguments]


def answering(result: bytes) -> Callable[[bytes | None, Exchange], Any]:
    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        return result

    return behave


@pytest.mark.parametrize(
    ("meta", "passed"),
    [(None, None), (5, None), ([], None), ({}, b"{}"), ({"traceparent": "00-1"}, b'{"traceparent":"00-1"}')],
)
async def test_meta_that_is_no_object_means_nothing(meta: object, passed: bytes | None) -> None:
    """It ended the call with an internal error."""
    proxy = Upstreams(answering(b"{}"))
    talk = Talk(proxy).begun()
    params = {"name": "x", "_meta": meta}
    talk.says(
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, separators=(",", ":")
        ).encode()
        + b"\n"
    )
    await talk.session.finish(1)
    assert [asked[2].meta for asked in proxy.asked] == [passed]


async def test_an_upstreams_error_keeps_code_message_and_data() -> None:
    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        raise UpstreamRpcError("shop", RpcError(-31999, "no “money”", b'{"a":1.0}'))

    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    await settled(talk, 1)
    expected = '{"jsonrpc":"2.0","id":1,"error":{"code":-31999,"message":"no “money”","data":{"a":1.0}}}\n'
    assert talk.lines == [expected.encode()]


async def test_a_defect_of_ours_leaves_nobody_waiting() -> None:
    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        raise ZeroDivisionError("oh")

    assert (await one_call(behave, {"name": "x"}))["error"]["code"] == INTERNAL_ERROR


async def test_an_unknown_tool_found_late_is_an_error() -> None:
    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        raise UnknownToolError("x", ("shop__pay",))

    error = (await one_call(behave, {"name": "x"}))["error"]
    assert error["code"] == INVALID_PARAMS
    assert "shop__pay" in error["message"]


# Progress and cancellation


@pytest.mark.parametrize("token", [7, 0, "abc", "ü", 12345678901234567890])
async def test_progress_goes_under_the_clients_token_and_before_the_result(token: object) -> None:
    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        call = Call(exchange, UpstreamRequest("shop", "tools/call", {}, timeout=1))
        for step in (1, 2, 3):
            call.progress(b'{"progressToken":99,"progress":%d,"total":3.0,"extra":[1.0]}' % step)
        return text_result("done")

    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x", "_meta": {"progressToken": token}})
    await settled(talk, 4)
    *progress, result = map(json.loads, talk.lines)
    assert [message["params"]["progress"] for message in progress] == [1, 2, 3]
    assert {json.dumps(message["params"]["progressToken"]) for message in progress} == {json.dumps(token)}
    assert b'"total":3.0,"extra":[1.0]' in talk.lines[0]
    assert result["id"] == 1


@pytest.mark.parametrize(
    "meta", [None, {}, {"progressToken": None}, {"progressToken": True}, {"progressToken": {}}, 5]
)
async def test_without_a_token_there_is_no_progress(meta: object) -> None:
    proxy = Upstreams(answering(b"{}"))
    talk = Talk(proxy).begun()
    talk.calls(1, {"name": "x", "_meta": meta})
    await talk.session.finish(1)
    assert [asked[2].progress_token for asked in proxy.asked] == [None]


class Stuck:
    """A call that never ends by itself."""

    def __init__(self) -> None:
        self.begun, self.cancelled = 0, 0

    async def __call__(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return b""


async def begun(stuck: Stuck, times: int) -> None:
    await comes_true(lambda: stuck.begun >= times)


async def test_a_cancelled_call_ends_and_is_not_answered() -> None:
    stuck = Stuck()
    talk = Talk(Upstreams(stuck)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    talk.calls("1", {"name": "x"})
    await begun(stuck, 2)
    talk.cancels(1)
    await comes_true(lambda: stuck.cancelled > 0)
    assert stuck.cancelled == 1  # not the one whose id only looks the same
    assert talk.lines == []
    await talk.session.finish(0)
    assert (stuck.cancelled, talk.lines) == (2, [])


async def test_the_id_of_a_cancelled_call_is_free_at_once() -> None:
    """When the first ended, the second was forgotten: no cancellation reached it, nor the end."""
    stuck = Stuck()
    talk = Talk(Upstreams(stuck)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    await begun(stuck, 1)
    talk.cancels(1)
    talk.calls(1, {"name": "x"})
    await begun(stuck, 2)
    await comes_true(lambda: stuck.cancelled == 1)
    for _ in range(5):
        await asyncio.sleep(0)  # until the first is over and done with
    talk.cancels(1)
    await comes_true(lambda: stuck.cancelled == 2)
    assert talk.lines == []


async def test_a_second_request_under_an_open_id_is_refused() -> None:
    stuck = Stuck()
    talk = Talk(Upstreams(stuck)).begun()
    talk.calls(1, {"name": "x"})
    await begun(stuck, 1)
    (answer,) = talk.says(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert (answer["id"], answer["error"]["code"]) == (None, INVALID_REQUEST)
    await talk.session.finish(0)
    assert stuck.begun == stuck.cancelled == 1


async def test_finish_gives_calls_a_moment() -> None:
    gate = asyncio.Event()

    async def behave(arguments: bytes | None, exchange: Exchange) -> bytes:
        await gate.wait()
        return b'{"content":[]}'

    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    asyncio.get_running_loop().call_soon(gate.set)
    await talk.session.finish(5)
    assert len(talk.lines) == 1


async def test_a_last_line_without_its_newline_counts() -> None:
    talk = Talk().begun()
    talk.session.receive(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
    talk.session.end()
    assert json.loads(talk.lines[-1]) == {"jsonrpc": "2.0", "id": 9, "result": {}}


async def test_what_the_desk_answered_and_takes_its_time_now_is_not_answered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through ``transparent``, with a card and without a snapshot, `initialize` was answered twice."""

    async def later(*_: object) -> bytes:
        return b"{}"

    talk = Talk()
    monkeypatch.setattr(Endpoint, "_initialize", later)
    talk.session.replay(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"
    )
    await talk.session.finish(5)
    assert talk.lines == []
    talk.goes_on()


@pytest.mark.parametrize(("capabilities", "taken"), [(None, True), ({}, True), ([], False), (5, False)])
def test_capabilities_are_an_object_or_none(capabilities: object, taken: bool) -> None:
    talk = Talk()
    opening = {**HELLO, "capabilities": capabilities}
    assert ("result" in talk.asks("initialize", opening)) == taken
    assert talk.session.client.capabilities.startswith(b"{")


async def test_a_call_that_is_cancelled_in_the_same_breath_is_never_begun(
    recwarn: pytest.WarningsRecorder,
) -> None:
    """Python said of it, on stderr, that it "was never awaited"."""
    talk = Talk().begun()
    talk.session.receive(
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"execute_tool"}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}\n'
    )
    await talk.session.finish(5)
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
    talk.goes_on()


def test_what_the_desk_answered_is_not_answered_again() -> None:
    talk = Talk()
    talk.session.replay(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"
    )
    assert talk.lines == []
    talk.goes_on()
