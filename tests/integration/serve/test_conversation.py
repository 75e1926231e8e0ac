"""Everything that may happen during a call passes, whatever the client and the upstream speak, and over what.

A column is a client (transport, era) and an upstream (transport, era); each test runs in all of them.
"""

import asyncio
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from helpers.sdk_client import Talk, comes, talking
from mcp import MCPError
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

URL_QUESTION = {
    "mode": "url",
    "message": "Sign in, please.",
    "url": "https://example.com/sign-in",
    "elicitationId": "e-1",
}
TOOLS = [
    {"name": "sign_in", "result": {"ask": {"method": "elicitation/create", "params": URL_QUESTION}}},
    {"name": "slow", "result": {"text": "at last", "delay": 60}},
    {"name": "echo"},
]
COLUMNS = [
    pytest.param(*column, id="-".join(column).replace("2026-07-28", "modern"))
    for column in product(
        ("stdio", "http"), ("legacy", "2026-07-28"), ("stdio", "http"), ("legacy", "modern")
    )
]


@pytest.mark.parametrize(("transport", "mode", "upstream", "era"), COLUMNS)
async def test_a_whole_conversation(
    fake_mcp: Fake, tmp_path: Path, transport: str, mode: str, upstream: str, era: str
) -> None:
    shop = fake_mcp("questions", name="shop", transport=upstream, era=era, tools=[*questions(), *TOOLS])
    async with talking(tmp_path, transport, mode, shop, level="info") as talk:
        await questions_are_answered(talk)
        await progress_and_logs_arrive(talk)
        await a_cancelled_call_is_cancelled_upstream(talk, shop)
        await prompts_and_resources_are_there(talk)
        await nothing_is_mixed_up(talk)
    assert [call["name"] for call in shop.record.calls("build")] == ["build"]


def questions() -> list[object]:
    from mcpzip_fakes.scenario import Scenario

    return list(Scenario.load("questions").tools)


async def questions_are_answered(talk: Talk) -> None:
    assert "All is well." in await talk.text("shop__summarize", {"text": "x"})
    assert '"people":4' in (await talk.text("shop__book_table")).replace(" ", "")
    assert "file:///here" in await talk.text("shop__where_am_i")
    assert "accept" in await talk.text("shop__sign_in")
    assert talk.asked == [100, "For how many?", "roots", "Sign in, please."]


async def progress_and_logs_arrive(talk: Talk) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))
        talk.news.set()

    assert await talk.text("shop__build", progress_callback=progress) == "built"
    await comes(lambda: len(heard) == 2, talk.news)  # the SDK calls back when it comes to it, in any order
    assert sorted(heard) == [(1, 2, "compiled"), (2, 2, "linked")]
    await comes(lambda: len(talk.told) == 2, talk.news)
    assert [(told.level, told.logger, told.data) for told in talk.told] == [
        ("info", "build", "compiling"),
        ("error", None, {"line": 3, "text": "unused import"}),
    ]


async def a_cancelled_call_is_cancelled_upstream(talk: Talk, shop: FakeServer) -> None:
    call = asyncio.create_task(talk.call("shop__slow"))
    await shop.record.until(lambda record: record.calls("slow"))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await shop.record.until(lambda record: record.events("cancelled"))


async def prompts_and_resources_are_there(talk: Talk) -> None:
    client = talk.client
    (prompt,) = (await client.list_prompts()).prompts
    assert prompt.name == "shop__review"
    review = await client.get_prompt("shop__review", {"file": "a.py"})
    assert review.messages[0].content.text == "Review a.py, please."  # type: ignore[union-attr]
    (resource,) = (await client.list_resources()).resources
    assert resource.uri == "mcpzip://shop/memo://today"
    (read,) = (await client.read_resource(resource.uri)).contents
    assert (read.uri, read.text) == (resource.uri, "Nothing to report.")  # type: ignore[union-attr]
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "mcpzip://shop/memo://{day}"
    (read,) = (await client.read_resource("mcpzip://shop/memo://monday")).contents
    assert read.text == "The memo of memo://monday."  # type: ignore[union-attr]
    with pytest.raises(MCPError) as unknown:
        await client.read_resource("mcpzip://shop/nothing:like-it")
    assert unknown.value.code in (-32002, -32602)


async def nothing_is_mixed_up(talk: Talk) -> None:
    """Many calls at a time, some with questions: every answer goes where it belongs."""
    asked = len(talk.asked)
    calls = [talk.text("shop__echo", {"n": n}) for n in range(20)]
    calls += [talk.text("shop__book_table") for _ in range(3)]
    answers = await asyncio.gather(*calls)
    assert [json.loads(answer) for answer in answers[:20]] == [{"n": n} for n in range(20)]
    assert all('"people":4' in answer.replace(" ", "") for answer in answers[20:])
    assert len(talk.asked) == asked + 3
