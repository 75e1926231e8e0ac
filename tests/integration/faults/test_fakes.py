"""The faults of HTTP that the table is made of do what they say: exchange by exchange."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.fault_table import COLUMNS, ROWS, Absent
from mcpzip_fakes.faults import KINDS, fault
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.scenario import Scenario, names

Start = Callable[..., FakeServer]
ACCEPT = {"accept": "application/json, text/event-stream"}


def request(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


INITIALIZE = request(
    "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
)
CALL = request("tools/call", name="pay", arguments={"n": 1})


async def post(server: FakeServer, message: dict[str, Any], url: str = "", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=10) as client:
        return await client.post(url or server.url, json=message, headers={**ACCEPT, **headers})


async def session(server: FakeServer) -> dict[str, str]:
    """The header of a new session."""
    opened = await post(server, INITIALIZE)
    return {"mcp-session-id": opened.headers["mcp-session-id"]}


def start(fake_mcp: Start, *faults: object, **keys: object) -> FakeServer:
    return fake_mcp(tools=["pay"], faults=list(faults), transport="http", era="legacy", **keys)


def lines(answer: httpx.Response) -> list[str]:
    """What stands in the events, without the ids and priming of the stream."""
    return [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]


REPLY = '{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\\"n\\":1}"}]}}'


async def test_a_token_is_refused_and_another_taken(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("token", accept=["new"], refuse=["old"]))
    for header in ({}, {"authorization": "Bearer old"}, {"authorization": "Bearer odd"}):
        refused = await post(server, INITIALIZE, **header)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    assert (await post(server, INITIALIZE, authorization="Bearer new")).status_code == 200


async def test_a_token_expires_after_some_calls(fake_mcp: Start) -> None:
    expires = fault("token", refuse=["old"], tool="pay", nth=3, times=100)
    server = start(fake_mcp, expires)
    known = await session(server)
    old = [await post(server, CALL, **known, authorization="Bearer old") for _ in range(4)]
    assert [answer.status_code for answer in old] == [200, 200, 401, 401]
    assert (await post(server, CALL, **known, authorization="Bearer new")).status_code == 200


@pytest.mark.parametrize(("to", "host"), [("same", "127.0.0.1"), ("other", "localhost")])
async def test_a_redirect_leads_to_the_same_server(fake_mcp: Start, to: str, host: str) -> None:
    server = start(fake_mcp, fault("redirect", to=to, status=308))
    sent_on = await post(server, INITIALIZE)
    assert sent_on.status_code == 308
    there = httpx.URL(server.url).join(sent_on.headers["location"])
    assert (there.host, there.port) == (host, httpx.URL(server.url).port)
    assert str(there) != server.url
    assert (await post(server, INITIALIZE, str(there))).status_code == 200


async def test_a_session_is_forgotten_for_good(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("forget-session", nth=1))
    first, second = await session(server), await session(server)
    assert [(await post(server, CALL, **first)).status_code for _ in range(2)] == [404, 404]
    assert (await post(server, CALL, **second)).status_code == 200


async def test_a_stream_ends_in_good_order_without_the_reply(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("cut", when="before", clean=True, nth=1))
    known = await session(server)
    assert (await post(server, CALL, **known)).text == ""
    assert lines(await post(server, CALL, **known)) == [REPLY]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("junk", ["DEBUG: 200 OK", REPLY]),
        ("duplicate", [REPLY, REPLY]),
        ("wrong-id", [REPLY.replace("7", '"nobody-asked-7f3a"', 1)]),
        ("torn", [REPLY]),
    ],
)
async def test_what_is_made_of_a_reply(fake_mcp: Start, kind: str, expected: list[str]) -> None:
    server = start(fake_mcp, fault(kind, tool="pay"))
    assert lines(await post(server, CALL, **await session(server))) == expected
    recorded = [line.message for line in server.record.sent()][1:]
    assert len(recorded) == len([line for line in expected if line.startswith("{")])


async def test_a_body_has_the_length_it_says(fake_mcp: Start) -> None:
    server = start(fake_mcp, fault("wrong-id"), fault("huge", size=1000), json_response=True)
    answer = await post(server, CALL, **await session(server))
    assert answer.json()["id"] == "nobody-asked-7f3a"
    assert int(answer.headers["content-length"]) == len(answer.content) > 1000


async def test_whoever_makes_the_file_mends_the_server(fake_mcp: Start, tmp_path: Path) -> None:
    server = start(fake_mcp, fault("status", status=503, until=str(tmp_path / "mended")))
    assert [(await post(server, INITIALIZE)).status_code for _ in range(2)] == [503, 503]
    (tmp_path / "mended").touch()
    assert (await post(server, INITIALIZE)).status_code == 200


# The table is whole


def test_every_kind_of_fault_is_in_the_table_and_in_a_shipped_scenario() -> None:
    tabled = {fault["kind"] for row in ROWS for fault in row.faults}
    shipped = {fault.kind for name in names() for fault in Scenario.load(name).faults}
    assert set(KINDS) - tabled == set()
    assert set(KINDS) - shipped == {"stderr"}


@pytest.mark.parametrize("column", COLUMNS)
def test_every_cell_is_played_or_says_why_not(column: str) -> None:
    for row in ROWS:
        cell = row.cell(column)
        playable = all(column.split()[0] in KINDS[fault["kind"]].over for fault in row.faults)
        assert cell.why if isinstance(cell, Absent) else playable
