"""A client's conversation: whatever it says, each request gets exactly one answer, and the talk goes on."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpzip.catalog import Catalog
from mcpzip.config import Config, ServerConfig
from mcpzip.model.errors import UnknownToolError, UpstreamRpcError
from mcpzip.proxy.proxy import Context, Proxy
from mcpzip.proxy.reply import text_result
from mcpzip.server.session import Session, Welcome

Json = dict[str, Any]

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    *range(-32600, -32604, -1),
)
UNSUPPORTED = -32022
META = "io.modelcontextprotocol/"
STAMP = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Upstreams(Proxy):
    """A proxy whose one tool does what the test says, and that notes what it was asked."""

    def __init__(self, behave: "Callable[[bytes | None, Context], Any] | None" = None) -> None:
        servers = {"shop": ServerConfig(name="shop", transport="stdio", command="never-run")}
        super().__init__(Config(path="/nowhere/config.json", servers=servers), Catalog())
        self.asked: list[tuple[str, bytes | None, Context]] = []
        self.behave = behave

    async def call(self, name: str, arguments: bytes | None, context: Context) -> bytes:
        self.asked.append((name, arguments, context))
        if self.behave is None:
            return await super().call(name, arguments, context)
        return await self.behave(arguments, context)


class Talk:
    """A client talking to a session: what goes in, and every line that came out."""

    def __init__(self, proxy: Proxy | None = None) -> None:
        proxy = proxy or Upstreams()
        self.lines: list[bytes] = []
        self.session = Session(proxy, Welcome(proxy), self.lines.append)

    def says(self, data: bytes) -> list[Json]:
        """The messages that these bytes bring about at once."""
        before = len(self.lines)
        self.session.receive(data)
        return [json.loads(line) for line in self.lines[before:] if line]

    def asks(self, method: str, params: object = None, id: object = 1) -> Json:
        """The one answer to a request."""
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        (answer,) = self.says(json.dumps(message).encode() + b"\n")
        assert answer["id"] == id
        return answer

    def calls(self, id: object, params: Json) -> None:
        """tools/call, to be answered later."""
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        self.session.receive(json.dumps(message).encode() + b"\n")

    def cancels(self, id: object) -> None:
        params = {"requestId": id, "reason": "no longer wanted"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self.session.receive(json.dumps(message).encode() + b"\n")

    def goes_on(self) -> None:
        """It still answers, in the era it was opened in."""
        answer = self.asks("tools/list", {"_meta": STAMP} if self.modern else {}, id="still there?")
        assert [tool["name"] for tool in answer["result"]["tools"]] == [
            "search_tools",
            "describe_tool",
            "execute_tool",
        ]

    modern = False

    def begun(self) -> "Talk":
        """After the legacy handshake."""
        assert self.asks("initialize", HELLO)["result"]["protocolVersion"] == "2025-11-25"
        assert self.says(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n') == []
        return self

    def begun_modern(self) -> "Talk":
        """After a first modern request."""
        assert "result" in self.asks("server/discover", {"_meta": STAMP})
        self.modern = True
        return self


# Opening


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        *[(version, version) for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")],
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_initialize_agrees_on_a_version(asked: str, given: str) -> None:
    result = Talk().asks("initialize", {**HELLO, "protocolVersion": asked})["result"]
    assert result["protocolVersion"] == given
    assert result["serverInfo"]["name"] == "mcpzip"
    assert "shop" in result["instructions"]
    assert result["capabilities"] == {"tools": {}}


def test_the_modern_era_needs_no_handshake() -> None:
    talk = Talk()
    talk.modern = True
    talk.goes_on()


def test_discover_says_what_modern_clients_need() -> None:
    result = Talk().asks("server/discover", {"_meta": STAMP})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] in ("private", "public")
    assert result["_meta"][f"{META}serverInfo"]["name"] == "mcpzip"


def test_only_modern_results_are_stamped() -> None:
    legacy = Talk().begun().asks("tools/list")["result"]
    assert legacy.keys() == {"tools"}
    modern = Talk().begun_modern().asks("tools/list", {"_meta": STAMP})["result"]
    assert {"tools", "resultType", "ttlMs", "cacheScope", "_meta"} == modern.keys()
    assert modern["tools"] == legacy["tools"]


def test_ping_needs_no_handshake_in_the_legacy_era() -> None:
    assert Talk().asks("ping")["result"] == {}
    assert Talk().begun().asks("ping")["result"] == {}


def test_initialize_again_is_answered_alike() -> None:
    """Bridges that put several clients on one process do that."""
    talk = Talk().begun()
    assert talk.asks("initialize", HELLO, id=2)["result"] == Talk().asks("initialize", HELLO)["result"]
    talk.goes_on()


def test_a_failed_initialize_settles_nothing() -> None:
    """It made the connection a legacy one."""
    talk = Talk()
    assert talk.asks("initialize", {})["error"]["code"] == INVALID_PARAMS
    talk.begun_modern().goes_on()


def test_a_refused_version_settles_nothing() -> None:
    talk = Talk()
    error = talk.asks("server/discover", {"_meta": {**STAMP, f"{META}protocolVersion": "2099-01-01"}})[
        "error"
    ]
    assert error["code"] == UNSUPPORTED
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
    talk.begun().goes_on()


# What is wrong


def modern(method: str, meta: object = STAMP, **params: object) -> tuple[str, Json]:
    return method, {**params, "_meta": meta}


@pytest.mark.parametrize(
    ("begin", "method", "params", "code"),
    [
        (Talk, "tools/list", None, INVALID_REQUEST),
        (Talk, "tools/call", {"name": "search_tools"}, INVALID_REQUEST),
        (Talk, "no/such/method", None, INVALID_REQUEST),
        (Talk, "initialize", {}, INVALID_PARAMS),
        (Talk, "initialize", {"protocolVersion": 5}, INVALID_PARAMS),
        (Talk, "server/discover", None, INVALID_PARAMS),
        (Talk, "server/discover", {"_meta": {f"{META}protocolVersion": "2026-07-28"}}, INVALID_PARAMS),
        (Talk, "server/discover", {"_meta": {f"{META}clientCapabilities": {}}}, INVALID_PARAMS),
        (Talk, *modern("tools/list", {**STAMP, f"{META}protocolVersion": "2025-11-25"}), UNSUPPORTED),
        (Talk, *modern("ping"), METHOD_NOT_FOUND),
        (Talk().begun, "resources/list", None, METHOD_NOT_FOUND),
        (Talk().begun, "prompts/list", {}, METHOD_NOT_FOUND),
        (Talk().begun, "", None, METHOD_NOT_FOUND),
        (Talk().begun, "tools/list", {"cursor": ""}, INVALID_PARAMS),
        (Talk().begun, "tools/list", {"cursor": "page-2"}, INVALID_PARAMS),
        (Talk().begun, *modern("tools/list"), INVALID_REQUEST),
        (Talk().begun, *modern("server/discover"), INVALID_REQUEST),
        (Talk().begun, "server/discover", None, INVALID_PARAMS),
        (Talk().begun_modern, "tools/list", None, INVALID_PARAMS),
        (Talk().begun_modern, "ping", None, INVALID_PARAMS),
        (Talk().begun_modern, "initialize", HELLO, INVALID_REQUEST),
        (Talk().begun_modern, *modern("initialized"), METHOD_NOT_FOUND),
        (Talk().begun_modern, *modern("logging/setLevel"), METHOD_NOT_FOUND),
        (Talk().begun_modern, *modern("tools/list", {**STAMP, f"{META}protocolVersion": "x"}), UNSUPPORTED),
    ],
)
def test_a_wrong_request_is_an_error_and_no_more(
    begin: Callable[[], Talk], method: str, params: Json | None, code: int
) -> None:
    talk = begin()
    error = talk.asks(method, params, id=77)["error"]
    assert error["code"] == code
    assert error["message"]
    if begin is Talk:
        talk = talk.begun() if code != METHOD_NOT_FOUND else talk.begun_modern()
    talk.goes_on()


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (b"hello", None, PARSE_ERROR),
        (b"{", None, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"', None, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"\xff"}}', 5, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":NaN}}', None, PARSE_ERROR),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', None, INVALID_REQUEST),
        (b"[]", None, INVALID_REQUEST),
        (b"5", None, INVALID_REQUEST),
        (b'"ping"', None, INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', 5, INVALID_REQUEST),
        (b'{"id":5,"method":"ping"}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":"x"}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":[5],"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5.5,"method":"ping"}', 5.5, INVALID_REQUEST),
        (b'{"a":' * 100_000, None, PARSE_ERROR),
    ],
)
def test_a_wrong_line_is_an_error_and_no_more(line: bytes, id: object, code: int) -> None:
    talk = Talk().begun()
    (answer,) = talk.says(line + b"\n")
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == id
    assert answer["error"]["code"] == code
    talk.goes_on()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" \t\r",
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{"x":[1]}}',
        b'{"jsonrpc":"2.0","method":"tools/list"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
        b'{"jsonrpc":"2.0","id":3,"result":{}}',
        b'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}',
    ],
)
def test_what_asks_nothing_is_not_answered(line: bytes) -> None:
    talk = Talk().begun()
    assert talk.says(line + b"\n") == []
    talk.goes_on()


@pytest.mark.parametrize(
    "id",
    [b"0", b"-0", b"7", b"-7", str(2**63).encode(), b"1" * 400, b'""', b'"a"', '"ä\U0001f600"'.encode(),
     rb'"\u0061"', rb'"\ud83d\ude00"', rb'"\ud800"', rb'"\"\\\/\n"', b'"' + b"x" * 5000 + b'"'],
)  # fmt: skip
def test_an_id_comes_back_byte_for_byte(id: bytes) -> None:
    talk = Talk()
    talk.session.receive(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % id)
    assert talk.lines == [b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % id]


@settings(max_examples=150)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_no_bytes_end_the_conversation(lines: list[bytes]) -> None:
    talk = Talk().begun()
    talk.session.receive(b"\n".join(lines) + b"\n")
    talk.goes_on()


# Calls


async def test_calls_run_at_the_same_time_and_are_answered_as_they_end() -> None:
    gates = {"1": asyncio.Event(), "2": asyncio.Event()}

    async def behave(arguments: bytes | None, context: Context) -> bytes:
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


async def comes_true(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not look():  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0)


async def settled(talk: Talk, lines: int) -> None:
    await comes_true(lambda: len(talk.lines) >= lines)


async def one_call(
    behave: Callable[[bytes | None, Context], Any] | None, params: Json, *, modern: bool = False
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

    async def behave(arguments: bytes | None, context: Context) -> bytes:
        return odd

    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    await settled(talk, 1)
    assert talk.lines == [b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % odd]


async def test_a_modern_result_is_stamped_and_else_untouched() -> None:
    async def behave(arguments: bytes | None, context: Context) -> bytes:
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


def answering(result: bytes) -> Callable[[bytes | None, Context], Any]:
    async def behave(arguments: bytes | None, context: Context) -> bytes:
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
    async def behave(arguments: bytes | None, context: Context) -> bytes:
        raise UpstreamRpcError("shop", -31999, "no “money”", b'{"a":1.0}')

    talk = Talk(Upstreams(behave)).begun()
    del talk.lines[:]
    talk.calls(1, {"name": "x"})
    await settled(talk, 1)
    expected = '{"jsonrpc":"2.0","id":1,"error":{"code":-31999,"message":"no “money”","data":{"a":1.0}}}\n'
    assert talk.lines == [expected.encode()]


async def test_a_defect_of_ours_leaves_nobody_waiting() -> None:
    async def behave(arguments: bytes | None, context: Context) -> bytes:
        raise ZeroDivisionError("oh")

    assert (await one_call(behave, {"name": "x"}))["error"]["code"] == INTERNAL_ERROR


async def test_an_unknown_tool_found_late_is_an_error() -> None:
    async def behave(arguments: bytes | None, context: Context) -> bytes:
        raise UnknownToolError("x", ("shop__pay",))

    error = (await one_call(behave, {"name": "x"}))["error"]
    assert error["code"] == INVALID_PARAMS
    assert "shop__pay" in error["message"]


# Progress and cancellation


@pytest.mark.parametrize("token", [7, 0, "abc", "ü", 12345678901234567890])
async def test_progress_goes_under_the_clients_token_and_before_the_result(token: object) -> None:
    async def behave(arguments: bytes | None, context: Context) -> bytes:
        assert context.on_progress is not None
        for step in (1, 2, 3):
            context.on_progress(b'{"progressToken":99,"progress":%d,"total":3.0,"extra":[1.0]}' % step)
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
    assert [asked[2].on_progress for asked in proxy.asked] == [None]


class Stuck:
    """A call that never ends by itself."""

    def __init__(self) -> None:
        self.begun, self.cancelled = 0, 0

    async def __call__(self, arguments: bytes | None, context: Context) -> bytes:
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

    async def behave(arguments: bytes | None, context: Context) -> bytes:
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


def test_what_the_desk_answered_is_not_answered_again() -> None:
    talk = Talk()
    talk.session.replay(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"
    )
    assert talk.lines == []
    talk.goes_on()
