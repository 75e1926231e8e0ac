"""The HTTP fakes, exchange by exchange: each fault once, headers and the record."""

import asyncio
import json
import time
from collections.abc import Callable

import httpx
import pytest
from helpers.driver import left_of
from helpers.fake_http_client import ACCEPT, INITIALIZE, modern, request
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.faults import fault
from mcpzip_fakes.launch import FakeServer

Start = Callable[..., FakeServer]


async def legacy(server: FakeServer, **headers: str) -> httpx.Response:
    """An initialize."""
    async with httpx.AsyncClient(timeout=10) as client:
        return await client.post(server.url, json=INITIALIZE, headers={**ACCEPT, **headers})


async def works(server: FakeServer) -> bool:
    answer = (await modern(server, "tools/call", name="echo", arguments={"n": 1})).json()
    return bool(answer["result"]["content"][0]["text"] == '{"n":1}')


def start(fake_mcp: Start, *faults: object, **keys: object) -> FakeServer:
    return fake_mcp(tools=["echo"], faults=list(faults), transport="http", **keys)


async def test_the_config_and_the_url(fake_mcp: Start) -> None:
    server = start(fake_mcp, name="shop")
    assert server.config == {"type": "http", "url": server.url}
    assert server.url.startswith("http://127.0.0.1:")
    assert server.command == []
    assert fake_mcp("slack", transport="sse").config["type"] == "sse"


async def test_headers_and_statuses_are_recorded(fake_mcp: Start) -> None:
    server = start(fake_mcp)
    assert (await legacy(server, authorization="Bearer t0ken")).status_code == 200
    [line] = server.record.received("initialize")
    headers = line.detail["headers"]
    assert isinstance(headers, dict)
    assert headers["authorization"] == "Bearer t0ken"
    assert (line.detail["verb"], line.detail["path"]) == ("POST", "/mcp")
    assert [it.detail["status"] for it in server.record.events("status")] == [200]
    [out] = server.record.sent()
    assert out.message["id"] == 1


@pytest.mark.parametrize("status", [500, 401, 403, 404, 429, 503])
async def test_a_status_for_every_request(fake_mcp: Start, status: int) -> None:
    server = start(fake_mcp, fault("status", status=status, text="go away", headers={"Retry-After": "7"}))
    for answer in (await legacy(server), await modern(server, "server/discover")):
        assert (answer.status_code, answer.text, answer.headers["retry-after"]) == (status, "go away", "7")
    async with httpx.AsyncClient() as client:
        assert (await client.get(server.url)).status_code == status


async def test_a_status_twice_and_then_never_again(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("status", status=429, times=2))
    assert [(await modern(server, "server/discover")).status_code for _ in range(3)] == [429, 429, 200]


async def test_a_status_for_one_tool(fake_mcp: Start) -> None:
    challenge = {"WWW-Authenticate": 'Bearer scope="pay"'}
    server = fake_mcp(
        tools=["echo", "pay"],
        faults=[fault("status", tool="pay", status=403, headers=challenge)],
        transport="http",
    )
    assert await works(server)
    refused = await modern(server, "tools/call", name="pay")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (403, 'Bearer scope="pay"')


async def test_a_redirect(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("status", status=307, headers={"Location": "/elsewhere"}))
    assert (await legacy(server)).headers["location"] == "/elsewhere"


async def test_hang(fake_mcp: Start) -> None:
    server = start(fake_mcp, "hang")
    async with httpx.AsyncClient(timeout=None) as client:
        for number, verb in enumerate(("POST", "GET", "DELETE"), 1):
            asking = asyncio.ensure_future(client.request(verb, server.url, json=request("ping")))
            await server.record.until(lambda seen, n=number: len(seen.received() + seen.events("http")) == n)
            await asyncio.wait({asking}, timeout=0.3)
            assert not asking.done()
            asking.cancel()
            await asyncio.wait({asking})
    assert server.record.events("status") == []
    assert server.record.methods() == ["ping"]
    assert [line.detail["verb"] for line in server.record.events("http")] == ["GET", "DELETE"]


async def test_silence_for_one_method(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("silence", method="server/discover"))
    waiting = asyncio.ensure_future(modern(server, "server/discover"))
    await server.record.until(lambda seen: seen.received("server/discover"))
    assert await works(server)
    assert not waiting.done()
    waiting.cancel()


async def test_an_error_instead_of_a_list(fake_mcp: Start) -> None:
    server = fake_mcp("errors", transport="http")
    error = (await modern(server, "tools/list")).json()["error"]
    assert error == {"code": -32603, "message": "the database is away", "data": {"retryAfter": 30}}


async def test_slow_start_keeps_requests_waiting(fake_mcp: Start) -> None:
    began = time.time()
    server = start(fake_mcp, fault("slow-start", seconds=0.2))
    assert await works(server)
    assert server.record.lines()[1].time - began >= 0.2


async def test_cut_in_the_middle_and_alive_after(fake_mcp: Start) -> None:
    for json_response in (True, False):
        server = start(fake_mcp, fault("cut", nth=1), json_response=json_response)
        with pytest.raises(httpx.RemoteProtocolError):
            await modern(server, "tools/call", name="echo", arguments={})
        assert await works(server)


@pytest.mark.parametrize("when", ["before", "middle", "after"])
async def test_crash_ends_the_process(fake_mcp: Start, when: str) -> None:
    server = start(fake_mcp, fault("crash", tool="echo", when=when, code=9))
    assert (await modern(server, "server/discover")).status_code == 200
    if when == "after":
        assert await works(server)
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            await modern(server, "tools/call", name="echo", arguments={})
    [end] = await server.record.until(lambda seen: seen.events("exit"))
    assert end.detail == {"reason": "crash", "code": 9}
    assert left_of([line.pid for line in server.record.events("start")]) == []  # it said so before it went
    with pytest.raises(httpx.ConnectError):
        await modern(server, "server/discover")


async def test_over_sse_a_cut_ends_the_stream_only(fake_mcp: Start) -> None:
    server = fake_mcp(tools=["echo"], faults=[fault("cut", method="initialize", nth=1)], transport="sse")
    for number in (1, 2):
        async with httpx.AsyncClient(timeout=10) as client, client.stream("GET", server.url) as stream:
            lines = stream.aiter_lines()
            endpoint = [await anext(lines) for _ in range(2)][1].removeprefix("data: ")
            await client.post(str(httpx.URL(server.url).join(endpoint)), json=INITIALIZE)
            if number == 1:
                with pytest.raises(httpx.RemoteProtocolError):
                    async for _ in lines:
                        pass
            else:
                answer = [await anext(lines) for _ in range(3)][2].removeprefix("data: ")
                assert json.loads(answer)["result"]["serverInfo"]["name"] == "fake"


async def test_over_sse_a_crash_cuts_the_stream(fake_mcp: Start) -> None:
    server = fake_mcp(
        tools=["echo"], faults=[fault("crash", method="initialize", when="middle")], transport="sse"
    )
    async with httpx.AsyncClient(timeout=10) as client, client.stream("GET", server.url) as stream:
        lines = stream.aiter_lines()
        endpoint = [await anext(lines) for _ in range(2)][1].removeprefix("data: ")
        await client.post(str(httpx.URL(server.url).join(endpoint)), json=INITIALIZE)
        with pytest.raises(httpx.RemoteProtocolError):
            async for _ in lines:
                pass
    assert await server.record.until(lambda seen: seen.events("exit"))


async def test_a_legacy_server_answers_modern_headers_with_400(fake_mcp: Start) -> None:
    server = start(fake_mcp, era="legacy")
    refused = await modern(server, "server/discover")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    assert (await legacy(server)).status_code == 200


async def test_a_modern_server_has_no_sessions_to_open(fake_mcp: Start) -> None:
    server = start(fake_mcp, era="modern")
    refused = await legacy(server)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32022)
    async with httpx.AsyncClient() as client:
        assert (await client.get(server.url)).status_code == 405
        assert (await client.delete(server.url)).status_code == 405
    assert await works(server)


async def test_header_parameters_are_checked_against_the_schema(fake_mcp: Start) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    server = fake_mcp(tools=[{"name": "echo", "inputSchema": schema}], transport="http")
    refused = await modern(server, "tools/call", name="echo", arguments={"region": "eu"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)


async def test_a_result_that_is_no_object_cannot_travel_over_http(fake_mcp: Start) -> None:
    server = fake_mcp(tools=[{"name": "odd", "result": {"raw": "[1]"}}], transport="http")
    error = (await modern(server, "tools/call", name="odd")).json()["error"]
    assert "play this scenario over stdio" in error["message"]


async def test_big_bodies_pass_both_ways(fake_mcp: Start) -> None:
    server = start(fake_mcp)
    answer = await modern(server, "tools/call", name="echo", arguments={"s": "x" * 5_000_000})
    assert len(json.loads(answer.json()["result"]["content"][0]["text"])["s"]) == 5_000_000


async def test_a_fault_of_stdio_is_refused(fake_mcp: Start) -> None:
    with pytest.raises(ScenarioError, match="the fault 'banner' can't be played over http; use stdio"):
        start(fake_mcp, "banner")


async def test_stop_closes_the_port_and_may_be_called_twice(fake_mcp: Start) -> None:
    server = start(fake_mcp)
    assert await works(server)
    server.stop()
    server.stop()
    with pytest.raises(httpx.ConnectError):
        await modern(server, "server/discover")
    assert [line.what for line in server.record.lines()][-1] == "exit"


async def test_a_stream_that_is_closed_before_the_answer_can_be_resumed(fake_mcp: Start) -> None:
    tool = {"name": "later", "result": {"text": "there", "hangs_up": 0.05, "delay": 0.05}}
    server = fake_mcp(tools=[tool], transport="http")
    async with httpx.AsyncClient(timeout=10) as client:
        opening = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "2025-11-25"}}
        first = await client.post(server.url, json=opening, headers=ACCEPT)
        session = {
            **ACCEPT,
            "mcp-session-id": first.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await client.post(server.url, json=ready, headers=session)
        call = request("tools/call", name="later", arguments={})
        events = _fields((await client.post(server.url, json=call, headers=session)).text)
        assert [event["data"] for event in events] == [""]
        assert int(events[0]["retry"]) > 0
        async with client.stream(
            "GET", server.url, headers={**session, "last-event-id": events[0]["id"]}
        ) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: {"):
                    assert json.loads(line[6:])["result"]["content"][0]["text"] == "there"
                    break
            else:
                raise AssertionError("the answer did not come")


def _fields(text: str) -> list[dict[str, str]]:
    """The events of a stream."""
    lines = (event.split("\n") for event in text.replace("\r\n", "\n").split("\n\n") if event)
    parted = ([line.partition(":") for line in event] for event in lines)
    return [{name: value.strip() for name, _, value in event} for event in parted]
