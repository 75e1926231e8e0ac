"""Cassettes as HTTP servers: statuses, headers, bodies and events, on real connections."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from helpers.cassettes import call, greeted, line, modern, opened, receive, reply, said, saved, send
from helpers.fake_stdio_client import Start

from mcpzip.cassettes.cassette import Event, Exchange, Response

EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache"}
JSON = {"content-type": "application/json"}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
QUESTION = line(id="q", method="elicitation/create", params={"message": "Sure?"})
ANSWER = line(id="q", result={"action": "accept"})


def posted(
    at: float,
    request: bytes,
    *events: Event,
    status: int = 200,
    headers: Mapping[str, str] = EVENTS,
    session: int = 1,
) -> Exchange:
    return Exchange(
        session=session,
        at=at,
        verb="POST",
        request=request,
        response=Response(status=status, headers=headers),
        events=events,
    )


def handshake(session: int = 1, id: str = "[masked 1]") -> list[Exchange]:
    initialized = line(method="notifications/initialized")
    return [
        posted(0.1, opened(), reply(0.1, greeted()), headers={**JSON, "mcp-session-id": id}, session=session),
        posted(
            0.3,
            initialized,
            status=202,
            headers={"x-kept": "1"},
            session=session,
        ),
    ]


@asynccontextmanager
async def client_of(
    start: Start, folder: Path, exchanges: Sequence[Exchange], transport: str = "http", **keys: object
) -> AsyncIterator[httpx.AsyncClient]:
    server = start(saved(folder, exchanges, transport), transport=transport, **keys)  # type: ignore[arg-type]
    async with httpx.AsyncClient(base_url=server.url, headers=ACCEPT, timeout=20) as client:
        yield client


async def initialize(client: httpx.AsyncClient) -> dict[str, str]:
    """Opens a session. Returns its header."""
    answer = await client.post("", content=opened("now"))
    assert answer.json()["id"] == "now"
    id = {"mcp-session-id": answer.headers["mcp-session-id"]}
    told = await client.post("", content=line(method="notifications/initialized"), headers=id)
    assert (told.status_code, told.content) == (202, b"")
    assert told.headers["x-kept"] == "1"
    return id


async def test_bodies_and_events_are_the_recorded_ones(fake_mcp: Start, tmp_path: Path) -> None:
    odd = b'{"id":2 ,"result":{"n":1.0}, "jsonrpc":"2.0"}'
    notice = line(method="notifications/message", params={"level": "info", "data": "é"})
    stream = posted(
        1,
        call(2),
        Event(kind="send", after=0.1, fields=("id: 7", "retry: 500")),
        Event(kind="send", after=0.2, data=notice, fields=("event: message",)),
        Event(kind="reply", after=0.3, data=odd, fields=("id: 8", "event: message")),
    )
    failed = posted(2, call(3, n=1), reply(0.1, b"no!\xff"), status=503, headers={"retry-after": "7"})
    async with client_of(fake_mcp, tmp_path, [*handshake(), stream, failed]) as client:
        id = await initialize(client)
        answer = await client.post("", content=call("x"), headers=id)
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.content.replace(b"\r\n", b"\n") == (
            b"id: 7\nretry: 500\n\nevent: message\ndata: %b\n\nid: 8\nevent: message\ndata: %b\n\n"
            % (notice, odd.replace(b'"id":2', b'"id":"x"'))
        )
        answer = await client.post("", content=call(3, n=1), headers=id)
        assert (answer.status_code, answer.content) == (503, b"no!\xff")
        assert answer.headers["retry-after"] == "7"


async def test_sessions_have_ids_of_their_own_and_end(fake_mcp: Start, tmp_path: Path) -> None:
    answers = [
        posted(1, call(1), reply(0.1, said(1, f"session {n}")), headers=JSON, session=n) for n in (1, 2)
    ]
    end = Exchange(at=5, verb="DELETE", response=Response(status=204))
    exchanges = [*handshake(1), *handshake(2, "plain"), *answers, end]
    async with client_of(fake_mcp, tmp_path, exchanges) as client:
        one, two, three = [await initialize(client) for _ in range(3)]
        assert len({str(each) for each in (one, two, three)}) == 3
        assert two == {"mcp-session-id": "plain"}
        for id, n in ((two, 2), (one, 1), (three, 2)):
            assert f"session {n}" in (await client.post("", content=call(1), headers=id)).text
        assert (await client.delete("", headers=one)).status_code == 204
        assert (await client.post("", content=call(1), headers=one)).status_code == 404
        assert (await client.post("", content=call(1), headers=two)).status_code == 200


async def test_questions_during_a_stream(fake_mcp: Start, tmp_path: Path) -> None:
    events = (send(0.1, QUESTION), receive(0.2, ANSWER), reply(0.3, said(2, "paid")))
    async with (
        client_of(fake_mcp, tmp_path, [*handshake(), posted(1, call(2), *events)]) as client,
    ):
        id = await initialize(client)
        async with client.stream("POST", "", content=call(2), headers=id) as answer:
            lines = answer.aiter_lines()
            assert json.loads((await anext(lines)).removeprefix("data: ")) == json.loads(QUESTION)
            assert (await client.post("", content=ANSWER, headers=id)).status_code == 202
            rest = [text async for text in lines if text]
        assert rest == [f"data: {said(2, 'paid').decode()}"]


@pytest.mark.parametrize("cut", [False, True])
async def test_a_stream_that_ends_early_and_is_resumed(fake_mcp: Start, tmp_path: Path, cut: bool) -> None:
    first = Event(kind="send", after=0.1, data=b"", fields=("id: 1",))
    resumed = Exchange(
        at=2,
        verb="GET",
        headers={"last-event-id": "1"},
        response=Response(status=200, headers=EVENTS),
        events=(reply(0.1, said(2, "paid")),),
    )
    ends = posted(1, call(2), first, Event(kind="end", after=0.2, cut=cut))
    async with client_of(fake_mcp, tmp_path, [*handshake(), ends, resumed]) as client:
        id = await initialize(client)
        heard = b""
        try:
            async with client.stream("POST", "", content=call(2), headers=id) as answer:
                async for piece in answer.aiter_bytes():
                    heard += piece
            assert not cut
        except httpx.RemoteProtocolError:
            assert cut
        assert heard.split() == [b"id:", b"1"]
        answer = await client.get("", headers={**id, "last-event-id": "1"})
        assert answer.text.split("data: ")[1].strip() == said(2, "paid").decode()
        assert (await client.get("", headers=id)).status_code == 405


async def test_a_connection_that_was_broken_without_a_response(fake_mcp: Start, tmp_path: Path) -> None:
    broken = Exchange(at=1, verb="POST", request=call(2), events=(Event(kind="end", after=0.1, cut=True),))
    async with client_of(fake_mcp, tmp_path, [*handshake(), broken]) as client:
        id = await initialize(client)
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("", content=call(2), headers=id)


async def test_the_stream_of_a_session_gets_what_the_server_sends_on_its_own(
    fake_mcp: Start, tmp_path: Path
) -> None:
    changed = line(method="notifications/tools/list_changed")
    stream = Exchange(
        at=1, verb="GET", response=Response(status=200, headers=EVENTS), events=(send(2, changed),)
    )
    exchanges = [*handshake(), stream, posted(2, call(2), reply(0.5, said(2, "paid")), headers=JSON)]
    async with client_of(fake_mcp, tmp_path, exchanges) as client:
        id = await initialize(client)
        async with client.stream("GET", "", headers=id) as answer:
            assert (await client.post("", content=call(2), headers=id)).json()["id"] == 2
            assert await anext(answer.aiter_lines()) == f"data: {changed.decode()}"


async def test_a_redirect_leads_to_this_server(fake_mcp: Start, tmp_path: Path) -> None:
    there = posted(1, call(2), status=307, headers={"location": "/elsewhere?x=1"})
    exchanges = [*handshake(), there, posted(2, call(2), reply(0.1, said(2, "paid")), headers=JSON)]
    async with client_of(fake_mcp, tmp_path, exchanges) as client:
        id = await initialize(client)
        answer = await client.post("", content=call(2), headers=id, follow_redirects=True)
        assert answer.json()["id"] == 2
        assert answer.url.query == b"x=1"


async def test_a_refused_handshake_is_tried_again_in_its_session(fake_mcp: Start, tmp_path: Path) -> None:
    refused = posted(0, opened(), status=401, headers={"www-authenticate": "Bearer"})
    async with client_of(fake_mcp, tmp_path, [refused, *handshake()]) as client:
        answer = await client.post("", content=opened())
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        await initialize(client)


async def test_an_unmatched_request_is_an_error(fake_mcp: Start, tmp_path: Path) -> None:
    async with client_of(fake_mcp, tmp_path, [*handshake(), posted(1, call(2))]) as client:
        id = await initialize(client)
        error = (await client.post("", content=call("c", n=1), headers=id)).json()["error"]
        assert error["code"] == -32602
        assert "params.arguments.n" in error["message"]


async def test_modern_requests_need_no_session(fake_mcp: Start, tmp_path: Path) -> None:
    listed = line(id=1, result={"tools": [], "resultType": "complete"})
    exchanges = [posted(0, modern(1, "tools/list"), reply(0.1, listed), headers=JSON)]
    async with client_of(fake_mcp, tmp_path, exchanges) as client:
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
        answer = await client.post("", content=modern("m", "tools/list"), headers=headers)
        assert answer.content == listed.replace(b'"id": 1', b'"id": "m"')


async def test_faults_work_on_top(fake_mcp: Start, tmp_path: Path) -> None:
    paid = [posted(n, call(n), reply(0.1, said(n, "paid")), headers=JSON) for n in range(1, 4)]
    faults = [
        {"kind": "status", "tool": "pay", "nth": 1, "status": 429},
        {"kind": "error", "tool": "pay", "nth": 2, "message": "No."},
        {"kind": "cut", "tool": "pay", "nth": 3},
        {"kind": "duplicate", "tool": "pay", "nth": 4},
    ]
    async with client_of(fake_mcp, tmp_path, [*handshake(), *paid], faults=faults) as client:
        id = await initialize(client)
        assert (await client.post("", content=call(1), headers=id)).status_code == 429
        assert (await client.post("", content=call(2), headers=id)).json()["error"]["message"] == "No."
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("", content=call(3), headers=id)
        answer = await client.post("", content=call(4), headers=id)
        assert answer.content.strip().count(b'"paid"') == 2


async def test_another_era_over_http(fake_mcp: Start, tmp_path: Path) -> None:
    paid = posted(1, call(1), reply(0.1, said(1, "paid")), headers=JSON)
    async with client_of(fake_mcp, tmp_path, [*handshake(), paid]) as client:
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "pay"}
        asked = modern("m", "tools/call", name="pay", arguments={})
        answer = await client.post("", content=asked, headers=headers, follow_redirects=True)
        told = (
            answer.json()
            if answer.headers["content-type"] == "application/json"
            else json.loads(answer.text.split("data: ")[1])
        )
        assert told["result"]["content"] == [{"type": "text", "text": "paid"}]
        assert told["result"]["resultType"] == "complete"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_cassette_of_stdio_over_http(fake_mcp: Start, tmp_path: Path, transport: str) -> None:
    from helpers.cassettes import handshake as stdio_handshake
    from mcp import Client
    from mcp.client.sse import sse_client

    listed = line(id=1, result={"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]})
    exchanges = [
        *stdio_handshake(),
        Exchange(at=1, request=line(id=1, method="tools/list"), events=(reply(0.1, listed),)),
        Exchange(at=2, request=call(2, n=1), events=(reply(0.1, said(2, "paid")),)),
    ]
    server = fake_mcp(saved(tmp_path, exchanges), transport=transport)
    target = server.url if transport == "http" else sse_client(server.url)
    async with Client(target, mode="legacy") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["pay"]
        result = await client.call_tool("pay", {"n": 1})
        assert result.content[0].text == "paid"  # type: ignore[union-attr]


async def test_the_older_transport(fake_mcp: Start, tmp_path: Path) -> None:
    accepted = Response(status=202)
    endpoint = Event(kind="send", after=0, data=b"/messages/?session_id=then", fields=("event: endpoint",))
    message = ("event: message",)
    exchanges = [
        Exchange(at=0, verb="GET", response=Response(status=200, headers=EVENTS), events=(endpoint,)),
        Exchange(
            at=1,
            verb="POST",
            request=opened(),
            response=accepted,
            events=(reply(0.1, b"Accepted"), Event(kind="reply", after=0.2, data=greeted(), fields=message)),
        ),
        Exchange(at=2, verb="POST", request=line(method="notifications/initialized"), response=accepted),
        Exchange(
            at=3,
            verb="POST",
            request=call(5, n=1),
            response=Response(status=400),
            events=(reply(0.1, b"no"),),
        ),
    ]
    async with client_of(fake_mcp, tmp_path, exchanges, "sse") as client, client.stream("GET", "") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "event: endpoint"
        url = httpx.URL(str(client.base_url)).join((await anext(lines)).removeprefix("data: "))
        assert "then" not in str(url)
        told = await client.post(url, content=opened("now"))
        assert (told.status_code, told.content) == (202, b"Accepted")
        assert [await anext(lines) for _ in range(3)] == [
            "",
            "event: message",
            f"data: {greeted('now').decode()}",
        ]
        told = await client.post(url, content=call(5, n=1))
        assert (told.status_code, told.content) == (400, b"no")
