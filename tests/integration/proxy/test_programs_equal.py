"""The value of a program is what the same calls give one by one, for every kind of content."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import Bridge, bridged
from helpers.driver import Json, text_of
from helpers.programs import META, call_to_make, done
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": "words\nand more"},
        {"type": "text", "text": '{"a": [1, 2.50, "é"]}'},
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "a://b", "blob": "aGVsbG8="}},
        {"type": "resource", "resource": {"uri": "a://b", "text": "inner"}},
        {"type": "resource_link", "uri": "a://b", "name": "b"},
    ]
)
RESULTS = st.fixed_dictionaries(
    {"content": st.lists(BLOCKS, max_size=3)},
    optional={"structuredContent": st.just({"n": 1.0, "big": 10**30, "text": "\u2028é"})},
)


EXAMPLES = 12


def drawn() -> list[list[Json]]:
    """Results for the calls of some programs."""
    found: list[list[Json]] = []

    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(RESULTS, min_size=1, max_size=3))
    def draw(results: list[Json]) -> None:
        found.append(results)

    draw()
    return found


def is_binary(block: Json) -> bool:
    return "data" in block or "blob" in block.get("resource", {})


def expected_value(result: Json, markers: list[Json]) -> Any:
    """The value of ``result`` in a program. markers: what stands for its images."""
    content, structured = result["content"], result.get("structuredContent")
    others = [block for block in content if block["type"] not in ("text", "resource") or is_binary(block)]
    if any(map(is_binary, content)):
        taken = iter(markers)
        blocks = [next(taken) if is_binary(block) else block for block in content]
        return blocks if structured is None else [*blocks, {"type": "structuredContent", "value": structured}]
    if structured is not None:
        return structured
    if others:
        return content
    texts = [block.get("text") or block["resource"]["text"] for block in content]
    parsed = [json.loads(text) if text.startswith("{") else None for text in texts]
    if all(each is not None for each in parsed):
        return parsed[0] if len(parsed) == 1 else parsed
    return "\n".join(texts)


def markers_in(value: Any) -> list[Json]:
    values = value if isinstance(value, list) else []
    return [each for each in values if isinstance(each, dict) and "$kept" in each]


Call = Callable[[str, Json], Awaitable[Json]]
"""Calls a tool of mcpzip; returns the result."""


@asynccontextmanager
async def caller(bridge: Bridge, transport: str, era: str) -> AsyncIterator[Call]:
    """A client of this era: over a stream as on stdio, or over HTTP."""
    if transport == "stdio":
        wire = await bridge.legacy() if era == "legacy" else bridge.modern()

        async def call(name: str, arguments: Json) -> Json:
            result: Json = (await wire.call(arguments, name))["result"]
            return result

        yield call
        return
    async with bridge.web() as web:
        session = await web.session() if era == "legacy" else None

        async def call(name: str, arguments: Json) -> Json:
            if session is not None:
                reply = await session.call(name, arguments=arguments)
            else:
                reply = await web.modern("tools/call", {"name": name, "arguments": arguments})
            result: Json = reply.last["result"]
            return result

        yield call


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    ("client", "server"),
    [("legacy", "legacy"), ("legacy", "modern"), ("modern", "legacy"), ("modern", "modern")],
)
async def test_a_value_is_what_the_same_calls_give_one_by_one(
    tmp_path: Path, client: str, server: str, transport: str
) -> None:
    async with bridged(tmp_path, server, **META) as bridge, caller(bridge, transport, client) as call:
        for results in drawn():
            asked = [{"name": "up__look", "arguments": {"do": [["result", each]]}} for each in results]
            single = [await call("execute_tool", each) for each in asked]
            calls = ", ".join(f"up__look(do=[['result', {each!r}]])" for each in results)
            ended = await call("run_code", {"code": f"return [{calls}]"})
            found = json.loads(ended["content"][0]["text"])
            assert found == [
                expected_value(one, markers_in(value)) for one, value in zip(single, found, strict=True)
            ]
            images = [block for one in single for block in one["content"] if is_binary(block)]
            assert ended["content"][1:-1] == images


async def test_over_http_a_paused_program_is_of_its_client(tmp_path: Path) -> None:
    """A session's is; one of 2026-07-28 has no session, so there the id itself is the secret."""
    code = {"code": "kept = 1\nup__run(do=[])\nkept"}
    async with bridged(tmp_path, **META) as bridge, bridge.web() as web:
        one, other = await web.session(), await web.session()
        paused = call_to_make((await one.call("run_code", arguments=code)).last["result"])
        for reply in (
            await other.call("execute_tool", arguments=paused),
            await web.modern("tools/call", {"name": "execute_tool", "arguments": paused}),
        ):
            assert "no paused program" in text_of(reply.last["result"])
        assert text_of((await one.call("execute_tool", arguments=paused)).last["result"]).startswith("1\n")
        for client in (other, one):
            reply = await client.call("run_code", arguments={"code": "kept"})
            assert bool(reply.last["result"].get("isError")) is (client is other)
        run = {"name": "run_code", "arguments": code}
        paused = call_to_make((await web.modern("tools/call", run)).last["result"])
        foreign = await one.call("execute_tool", arguments=paused)
        assert "no paused program" in text_of(foreign.last["result"])
        again = await web.modern("tools/call", {"name": "execute_tool", "arguments": paused})
        assert text_of(again.last["result"]).startswith("1\n")
        kept = await web.modern("tools/call", {"name": "run_code", "arguments": {"code": "kept"}})
        assert "NameError" in text_of(kept.last["result"])
    assert len(done(bridge)) == 2
