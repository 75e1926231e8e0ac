"""What was recorded over HTTP is replayed: the client gets the same statuses, headers, bodies and events."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from helpers.cassettes import KEY
from helpers.fake_stdio_client import Start
from mcp import Client
from mcp.client.sse import sse_client
from mcp_types import ElicitResult
from mcpzip_fakes.launch import importable

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
FORM = '{"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}'
TOOLS = [
    {"name": "slow", "result": {"text": "done", "delay": 0.02, "progress": 2}},
    {"name": "asks", "result": {"ask": {"method": "elicitation/create", "params": FORM}, "text": "ok"}},
    {"name": "counts", "result": {"text": "call {#}", "fill": True}},
    "refused",
    "cut",
    "fails",
]
FAULTS = [
    {"kind": "status", "tool": "refused", "status": 429, "headers": {"retry-after": "3"}, "text": "later"},
    {"kind": "cut", "tool": "cut"},
    {"kind": "error", "tool": "fails", "message": "no"},
    {"kind": "redirect", "tool": "counts", "nth": 1},
]
_NOT_COMPARED = {"date", "server", "mcp-session-id", "content-length", "transfer-encoding", "connection"}


class Heard(NamedTuple):
    """One response, and how its connection ended."""

    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool


@contextmanager
def recorder(cassette: Path, url: str) -> Iterator[str]:
    """``mcpzip-fake record --url``; its own URL."""
    command = [sys.executable, "-m", "mcpzip_fakes", "record", str(cassette), "--url", url]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **importable()}
    )
    with process:
        assert process.stdout
        yield process.stdout.readline().decode().split()[1]
        process.terminate()


class _Client:
    """A client whose transcript is ``heard``."""

    def __init__(self, client: httpx.AsyncClient, url: str, modern: bool) -> None:
        self._client, self._url, self._modern = client, url, modern
        self._number = 0
        self._session: dict[str, str] = {}
        self.heard: list[Heard] = []

    async def say(self, method: str, *, notify: bool = False, **params: Any) -> None:
        self._number += 1
        meta: dict[str, Any] = {"progressToken": self._number}
        headers = dict(self._session)
        if self._modern:
            meta[f"{KEY}protocolVersion"] = "2026-07-28"
            meta[f"{KEY}clientCapabilities"] = {"elicitation": {"form": {}}}
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            headers |= {"mcp-name": params["name"]} if "name" in params else {}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": meta}}
        await self._post({**message, **({} if notify else {"id": self._number})}, headers)

    async def _post(self, message: dict[str, Any], headers: dict[str, str]) -> None:
        body, cut = b"", False
        try:
            async with self._client.stream("POST", self._url, json=message, headers=headers) as answer:
                self._session |= {k: v for k, v in answer.headers.items() if k == "mcp-session-id"}
                async for piece in answer.aiter_raw():
                    body += piece
                    await self._hear(piece)
        except httpx.RemoteProtocolError:
            cut = True
        if cut and answer.headers["content-type"].startswith("text/event-stream"):
            body = body[: body.rfind(b"\r\n\r\n") + 4 if b"\r\n\r\n" in body else 0]  # whole events
        told = {name: value for name, value in answer.headers.items() if name not in _NOT_COMPARED}
        if "location" in told:
            told["location"] = httpx.URL(told["location"]).path
        self.heard.append(Heard(answer.status_code, told, body.replace(b"\r\n", b"\n"), cut))
        if answer.status_code == 307:
            await self._post_again(message, headers, told["location"])

    async def _post_again(self, message: dict[str, Any], headers: dict[str, str], path: str) -> None:
        answer = await self._client.post(httpx.URL(self._url).join(path), json=message, headers=headers)
        self.heard.append(Heard(answer.status_code, {}, answer.content.replace(b"\r\n", b"\n"), False))

    async def _hear(self, piece: bytes) -> None:
        """Answers questions."""
        for line in piece.splitlines():
            if line.startswith(b"data: ") and b"elicitation/create" in line and b"inputRequests" not in line:
                question = json.loads(line.removeprefix(b"data: "))
                answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
                told = await self._client.post(self._url, json=answer, headers=self._session)
                assert told.status_code == 202


async def transcript(url: str, *, modern: bool) -> list[Heard]:
    async with httpx.AsyncClient(headers=ACCEPT, timeout=20) as http:
        client = _Client(http, url, modern)
        if not modern:
            opening = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
            await client.say("initialize", **opening, clientInfo={"name": "c", "version": "1"})
            await client.say("notifications/initialized", notify=True)
        await client.say("tools/list")
        for name in ("slow", "counts", "counts", "asks", "refused", "fails", "cut", "counts"):
            await client.say("tools/call", name=name, arguments={})
        return client.heard


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("json_response", [False, True])
async def test_a_recorded_session_over_http(
    fake_mcp: Start, tmp_path: Path, modern: bool, json_response: bool
) -> None:
    tools = [tool for tool in TOOLS if modern or not json_response or not str(tool).count("elicitation")]
    server = fake_mcp(name="drawn", tools=tools, faults=FAULTS, transport="http", json_response=json_response)
    cassette = tmp_path / "drawn.toml"
    with recorder(cassette, server.url) as url:
        recorded = await asyncio.wait_for(transcript(url, modern=modern), 40)
    played = fake_mcp(cassette, transport="http")
    again = await asyncio.wait_for(transcript(played.url, modern=modern), 40)
    assert again == recorded
    assert {heard.status for heard in recorded} >= {200, 307, 429}


async def used(url: str, mode: str) -> list[Any]:
    """What the SDK's client gets of a server of the scenario ``shared``."""

    async def elicit(context: object, params: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Bob"})

    target = sse_client(url) if url.endswith("/sse") else url
    async with Client(target, mode=mode, elicitation_callback=elicit) as client:  # type: ignore[arg-type]
        names = [tool.name for tool in (await client.list_tools()).tools]
        texts = []
        for name, word in (("say", "a"), ("form", "Who?"), ("say", "b")):
            result = await client.call_tool(name, {"word": word})
            texts.append(result.content[0].text)  # type: ignore[union-attr]
        return [names, *texts]


async def test_a_recorded_session_over_sse(fake_mcp: Start, tmp_path: Path) -> None:
    server, cassette = fake_mcp("shared", transport="sse"), tmp_path / "shared.toml"
    with recorder(cassette, server.url) as url:
        recorded = await asyncio.wait_for(used(url, "legacy"), 40)
    played = fake_mcp(cassette, transport="sse")
    for _ in range(2):
        assert await asyncio.wait_for(used(played.url, "legacy"), 40) == recorded
    other = fake_mcp(cassette, transport="http")
    for mode in ("legacy", "2026-07-28"):
        assert await asyncio.wait_for(used(other.url, mode), 40) == recorded
    assert recorded[1:] == ["a", "Who?: Bob", "b"]
