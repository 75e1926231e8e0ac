"""Modern clients over HTTP, which can't be told apart, in front of legacy servers that ask."""

import asyncio
import json
from pathlib import Path

import pytest
from helpers.bridging import (
    META,
    SAID,
    SAMPLE,
    WAIT,
    bridged,
    log,
    refused,
    text_of,
)
from helpers.driver import Json, alive, comes_true
from helpers.raw_http_client import Reply, Web, modern_message

from mcpzip.proxy import exclusive_connections, tool_caller


def called(do: object, **more: object) -> tuple[str, Json]:
    return "tools/call", {"name": "up__run", "arguments": {"do": do}, **more}


def able(**capabilities: object) -> Json:
    return {"_meta": {f"{META}clientCapabilities": capabilities}}


async def over_web(web: Web, do: object, capabilities: Json, asked: Reply | None, *answers: Json) -> Reply:
    more: Json = {}
    if asked is not None:
        result = asked.last["result"]
        given = dict(zip(result["inputRequests"], answers, strict=False))
        more = {"inputResponses": given, "requestState": result["requestState"]}
    return await web.modern(*called(do, **more, **able(**capabilities)))


async def test_over_http_whoever_holds_the_handle_may_answer(tmp_path: Path) -> None:
    """A modern request is nobody's in particular: the handle, which can't be guessed, is all there is."""
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        asked = await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, None)
        stream = bridge.modern(sampling={})
        await refused(stream, [SAMPLE, WAIT], asked.last["result"]["requestState"])
        answer = await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, asked, SAID)
        assert text_of(answer.last) == {"q": SAID}


async def test_over_http_more_questions_than_lanes_are_all_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exclusive_connections, "EXCLUSIVE_CONNECTIONS", 3)
    async with bridged(tmp_path) as bridge, bridge.web() as web:

        async def one(number: int) -> object:
            do = [["ask", f"q{number}", "roots/list"], WAIT]
            asked = await over_web(web, do, {"roots": {}}, None)
            answer = await over_web(web, do, {"roots": {}}, asked, {"roots": [{"uri": f"file:///{number}"}]})
            return text_of(answer.last)

        answers = await asyncio.gather(*map(one, range(8)))
        assert answers == [{f"q{n}": {"roots": [{"uri": f"file:///{n}"}]}} for n in range(8)]
        assert bridge.starts() <= 1 + 3


async def test_over_http_calls_that_wait_hold_up_no_other_server_nor_a_modern_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All calls of clients that can be asked shared sixteen places, whatever they were for."""
    monkeypatch.setattr(exclusive_connections, "EXCLUSIVE_CONNECTIONS", 2)
    async with bridged(tmp_path, "legacy", "legacy", "modern") as bridge, bridge.web() as web:
        for _ in range(2):
            await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, None)
        async with asyncio.timeout(10):
            for name in ("up2__run", "up3__run"):
                params = {"name": name, "arguments": {}, **able(sampling={})}
                assert "result" in (await web.modern("tools/call", params)).last


async def test_over_http_a_call_that_waited_long_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that never came back held every place for ten minutes."""
    monkeypatch.setattr(exclusive_connections, "EXCLUSIVE_CONNECTIONS", 2)
    monkeypatch.setattr(exclusive_connections, "YIELD_AFTER", 1.0)
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        first, second = [await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, None) for _ in range(2)]
        assert "result" in (await over_web(web, [], {"sampling": {}}, None)).last
        error = (await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, first, SAID)).last["error"]
        assert error["code"] == -32602
        answer = await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, second, SAID)
        assert text_of(answer.last) == {"q": SAID}


async def test_over_http_a_call_that_waits_for_its_turn_has_its_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for as long as others held all places, whatever its timeout."""
    monkeypatch.setattr(exclusive_connections, "EXCLUSIVE_CONNECTIONS", 1)
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        await over_web(web, [SAMPLE, WAIT], {"sampling": {}}, None)
        monkeypatch.setattr(tool_caller, "timeout_of", lambda config, server: 0.2)
        said = str((await over_web(web, [], {"sampling": {}}, None)).last["result"]["content"])
        assert "were in use for 0.2 s" in said
        assert "nothing was sent" in said


async def test_over_http_nothing_is_kept_of_how_clients_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each set of capabilities had lanes of its own, for ever, and an upstream process for each."""
    monkeypatch.setattr(exclusive_connections, "EXCLUSIVE_CONNECTIONS", 2)
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        for number in range(6):
            await over_web(web, [], {"sampling": {}, "extra": {"n": number}}, None)
        assert len(bridge.proxy._pipeline._exclusive) <= 2
        pids = [line["started"] for line in bridge.lines() if "started" in line]
        await comes_true(lambda: sum(map(alive, pids)) <= 3)


async def test_over_http_hanging_up_cancels_a_resumed_call(tmp_path: Path) -> None:
    do = [SAMPLE, WAIT, ["hang"]]
    async with bridged(tmp_path) as bridge, bridge.web() as web:
        asked = (await over_web(web, do, {"sampling": {}}, None)).last["result"]
        (key,) = asked["inputRequests"]
        more = {"inputResponses": {key: SAID}, "requestState": asked["requestState"]}

        body, headers = modern_message(*called(do, **more, **able(sampling={})))
        async with web.connected() as connection:
            await connection.write(web.request("POST", body, **headers))
            await comes_true(lambda: any("result" in line for line in bridge.lines()))
        await bridge.gets("notifications/cancelled")


async def test_over_http_levels_are_each_clients_own(tmp_path: Path) -> None:
    go = tmp_path / "go"
    do = [["await", str(go)], log("debug", 1), log("error", 2)]
    async with bridged(tmp_path) as bridge, bridge.web() as web:

        async def heard(level: str | None) -> list[object]:
            meta = {} if level is None else {f"{META}logLevel": level}
            reply = await web.modern(*called(do, _meta=meta))
            told = map(json.loads, reply.messages)
            return [one["params"]["data"] for one in told if one.get("method") == "notifications/message"]

        hearing = asyncio.gather(heard("debug"), heard("error"), heard(None))
        await bridge.gets("tools/call", 3)
        go.touch()
        assert await hearing == [[1, 2], [2], []]
