"""Cassettes of one era, to clients of the other one."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.cassettes import KEY, call, handshake, line, modern, reply, said, saved, send
from helpers.fake_stdio_client import Conversation, Start, talk

from mcpzip.cassettes.cassette import Event, Exchange

FORM = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
YES, NO = {"action": "accept", "content": {}}, {"action": "decline"}
TOOLS = [{"name": "pay", "inputSchema": {"type": "object"}, "x": 1}]
STATE = "opaque"


def receive(after: float, data: bytes) -> Event:
    return Event(kind="receive", after=after, data=data)


def progress(after: float, token: object, number: int) -> Event:
    params = {"progressToken": token, "progress": number}
    return send(after, line(method="notifications/progress", params=params))


def log(after: float, level: str, data: str) -> Event:
    return send(after, line(method="notifications/message", params={"level": level, "data": data}))


def legacy(answer: dict[str, object], text: str, at: float = 3) -> Exchange:
    """A call in which the server asked something."""
    return Exchange(
        at=at,
        request=call(2, token=2),
        events=(
            progress(0.1, 2, 1),
            log(0.2, "info", "thinking"),
            send(0.3, line(id="q", method="elicitation/create", params=FORM)),
            receive(0.4, line(id="q", result=answer)),
            progress(0.5, 2, 2),
            reply(0.6, said(2, text)),
        ),
    )


LEGACY = [
    *handshake(),
    Exchange(
        at=1,
        request=line(id=1, method="tools/list"),
        events=(reply(0.1, line(id=1, result={"tools": TOOLS, "nextCursor": "next"})),),
    ),
    Exchange(
        at=2,
        request=line(id=1, method="tools/list", params={"cursor": "next"}),
        events=(reply(0.1, line(id=1, result={"tools": []})),),
    ),
    legacy(YES, "paid"),
    legacy(NO, "not paid", at=4),
    Exchange(at=5, events=(send(0, line(method="notifications/tools/list_changed")),)),
    Exchange(
        at=6,
        request=line(id=9, method="resources/read", params={"uri": "file:///x"}),
        events=(reply(0.1, line(id=9, error={"code": -32002, "message": "gone", "data": {"uri": "x"}})),),
    ),
]


def modern_call(id: object, token: object = None, **params: object) -> bytes:
    asked = json.loads(modern(id, "tools/call", name="pay", arguments={}, **params))
    asked["params"]["_meta"]["progressToken"] = token
    return json.dumps(asked).encode()


def completed(id: object, **members: object) -> bytes:
    meta = {"_meta": {f"{KEY}serverInfo": {"name": "shop", "version": "7", "title": "The shop"}}}
    return line(id=id, result={**members, "resultType": "complete", **meta})


def modern_rounds(answer: dict[str, object], text: str, at: float) -> list[Exchange]:
    questions = {"sure": {"method": "elicitation/create", "params": FORM}}
    required = {"resultType": "input_required", "inputRequests": questions, "requestState": STATE}
    again = modern_call(5, 5, inputResponses={"sure": answer}, requestState=STATE)
    content = [{"type": "text", "text": text}]
    return [
        Exchange(
            at=at,
            request=modern_call(4, 4),
            events=(progress(0.1, 4, 1), reply(0.2, line(id=4, result=required))),
        ),
        Exchange(
            at=at + 0.5,
            request=again,
            events=(progress(0.1, 5, 2), reply(0.2, completed(5, content=content, ttlMs=1))),
        ),
    ]


MODERN = [
    Exchange(
        at=1,
        request=modern(1, "tools/list"),
        events=(reply(0.1, completed(1, tools=TOOLS, ttlMs=500, cacheScope="public")),),
    ),
    *modern_rounds(YES, "paid", 2),
    *modern_rounds(NO, "not paid", 3),
]


async def asked(client: Conversation, answer: dict[str, object]) -> list[Any]:
    """What a legacy client hears of the call ``pay``; it answers the question in it."""
    client.say(call("c", token="t") + b"\n")
    heard = []
    while not heard or "result" not in heard[-1]:
        heard.append(await client.hear())
        if heard[-1].get("method") == "elicitation/create":
            client.say(line(id=heard[-1]["id"], result=answer) + b"\n")
    return heard


async def opened(client: Conversation) -> Any:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "now", "version": "1"},
    }
    greeting = await client.ask(0, "initialize", **params).hear()
    client.say('{"jsonrpc":"2.0","method":"notifications/initialized"}')
    return greeting["result"]


def capable(id: object, method: str, token: object = None, **params: object) -> bytes:
    asked = json.loads(modern(id, method, **params))
    meta = {f"{KEY}clientCapabilities": {"elicitation": {"form": {}}}, f"{KEY}logLevel": "debug"}
    asked["params"]["_meta"] |= {**meta, "progressToken": token}
    return json.dumps(asked).encode() + b"\n"


@pytest.mark.parametrize(("answer", "text"), [(YES, "paid"), (NO, "not paid")])
async def test_a_legacy_cassette_to_a_modern_client(
    fake_mcp: Start, tmp_path: Path, answer: dict[str, object], text: str
) -> None:
    async with talk(fake_mcp(saved(tmp_path, LEGACY))) as client:
        found = (await client.modern(0, "server/discover").hear())["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["capabilities"] == {"tools": {}}
        assert found["_meta"][f"{KEY}serverInfo"] == {"name": "shop", "version": "7"}

        listed = (await client.modern(1, "tools/list").hear())["result"]
        assert (listed["tools"], listed["nextCursor"]) == (TOOLS, "next")
        assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 0, "private")
        assert (await client.modern(1, "tools/list", cursor="next").hear())["result"]["tools"] == []

        client.say(capable(2, "tools/call", "t", name="pay", arguments={}))
        heard = [await client.hear() for _ in range(3)]
        assert [it.get("params", {}).get("data") for it in heard] == [None, "thinking", None]
        assert heard[0]["params"] == {"progressToken": "t", "progress": 1}
        required = heard[2]["result"]
        assert required["resultType"] == "input_required"
        ((name, question),) = required["inputRequests"].items()
        assert question == {"method": "elicitation/create", "params": FORM}

        again = {"inputResponses": {name: answer}, "requestState": required["requestState"]}
        client.say(capable(3, "tools/call", "t", name="pay", arguments={}, **again))
        assert (await client.hear())["params"] == {"progressToken": "t", "progress": 2}
        told = (await client.hear())["result"]
        assert told["content"] == [{"type": "text", "text": text}]
        assert told["resultType"] == "complete"

        client.modern(8, "resources/read", uri="file:///x")
        assert (await client.hear())["error"] == {"code": -32602, "message": "gone", "data": {"uri": "x"}}


async def test_a_legacy_answer_that_was_never_given(fake_mcp: Start, tmp_path: Path) -> None:
    async with talk(fake_mcp(saved(tmp_path, LEGACY))) as client:
        client.say(capable(2, "tools/call", name="pay", arguments={}))
        while "result" not in (heard := await client.hear()):
            pass
        (name,) = heard["result"]["inputRequests"]
        state = heard["result"]["requestState"]
        again = {"inputResponses": {name: {"action": "cancel"}}, "requestState": state}
        client.say(capable(3, "tools/call", name="pay", arguments={}, **again))
        error = (await client.hear())["error"]
        assert 'elicitation/create.action\n      - "accept"\n      + "cancel"' in error["message"]


@pytest.mark.parametrize(("answer", "text"), [(YES, "paid"), (NO, "not paid")])
async def test_a_modern_cassette_to_a_legacy_client(
    fake_mcp: Start, tmp_path: Path, answer: dict[str, object], text: str
) -> None:
    async with talk(fake_mcp(saved(tmp_path, MODERN))) as client:
        greeting = await opened(client)
        assert greeting["protocolVersion"] == "2025-11-25"
        assert greeting["serverInfo"] == {"name": "shop", "version": "7", "title": "The shop"}
        assert (await client.ask(1, "tools/list").hear())["result"] == {"tools": TOOLS}
        heard = await asked(client, answer)
        assert [it.get("method", "result") for it in heard] == [
            "notifications/progress",
            "elicitation/create",
            "notifications/progress",
            "result",
        ]
        assert [it["params"] for it in heard if "progress" in it.get("method", "")] == [
            {"progressToken": "t", "progress": 1},
            {"progressToken": "t", "progress": 2},
        ]
        assert heard[1]["params"] == FORM
        assert heard[3]["result"] == {"content": [{"type": "text", "text": text}]}


async def test_the_same_era_gets_the_recorded_rounds(fake_mcp: Start, tmp_path: Path) -> None:
    async with talk(fake_mcp(saved(tmp_path, MODERN))) as client:
        client.say(modern_call("a", "t") + b"\n")
        assert (await client.hear())["params"] == {"progressToken": "t", "progress": 1}
        required = (await client.hear())["result"]
        assert required["requestState"] == STATE
        again = modern_call("b", None, inputResponses={"sure": NO}, requestState=STATE)
        client.say(again + b"\n")
        assert (await client.hear())["result"]["content"] == [{"type": "text", "text": "not paid"}]


async def test_changes_reach_a_modern_listener(fake_mcp: Start, tmp_path: Path) -> None:
    async with talk(fake_mcp(saved(tmp_path, LEGACY))) as client:
        client.modern("l", "subscriptions/listen", notifications={"toolsListChanged": True})
        assert (await client.hear())["method"] == "notifications/subscriptions/acknowledged"
        for number in range(2):
            client.say(capable(number, "tools/call", name="pay", arguments={}))
            while "result" not in (heard := await client.hear()):
                pass
            ((name, _),) = heard["result"]["inputRequests"].items()
            again = {"inputResponses": {name: NO}, "requestState": heard["result"]["requestState"]}
            client.say(capable(f"again-{number}", "tools/call", name="pay", arguments={}, **again))
            while heard.get("id") != f"again-{number}":
                heard = await client.hear()
        assert (await client.hear())["method"] == "notifications/tools/list_changed"


async def test_the_era_can_be_asked_for(fake_mcp: Start, tmp_path: Path) -> None:
    async with talk(fake_mcp(saved(tmp_path, LEGACY), era="modern")) as client:
        refused = await client.ask(0, "initialize", protocolVersion="2025-11-25", capabilities={}).hear()
        assert refused["error"]["code"] == -32022


async def test_faults_that_need_computed_answers(fake_mcp: Start, tmp_path: Path) -> None:
    """The client's era was recorded, but no recorded line can play this fault."""
    faults = [{"kind": "flood", "count": 2, "what": "list-changed", "tool": "pay"}]
    file = saved(
        tmp_path, [*handshake(), Exchange(at=1, request=call(1), events=(reply(0.1, said(1, "paid")),))]
    )
    async with talk(fake_mcp(file, faults=faults)) as client:
        await client.initialize()
        client.call(3, "pay")
        heard = [await client.hear() for _ in range(3)]
        assert [it.get("method") for it in heard] == ["notifications/tools/list_changed"] * 2 + [None]
        assert heard[2]["result"]["content"][0]["text"] == "paid"
