"""Large results are kept, and every byte of them stays readable, for their client alone."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.bridging import Bridge
from helpers.driver import Json, comes_true, executed, proxy_of, run_here, serving, text_of, write_config
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcpzip_fakes.launch import FakeServer

from mcpzip.config.schema import Config, ResultsConfig
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import KeptNoMoreError, OverloadedError
from mcpzip.proxy import kept_results
from mcpzip.proxy.arguments import ToolCall
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.kept_results import Results
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.statistics import Statistics
from mcpzip.wire import Era, join_object, quote

Fake = Callable[..., FakeServer]

WORDS = "\n".join(f"line {number} of many words" for number in range(4_000))
BIG = json.dumps(
    {
        "content": [{"type": "text", "text": WORDS}, {"type": "image", "data": "aaaa", "mimeType": "a/b"}],
        "_meta": {"x": 1},
        "odd": 1.50,
    }
)
TOOLS: list[Json] = [
    {"name": "log", "result": {"raw": BIG}},
    {"name": "small", "result": {"text": "small"}},
    {"name": "items", "result": {"structuredContent": {"items": [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]}}},
    {"name": "send", "result": {"text": "sent"}},
    {"name": "query", "inputSchema": {"type": "object", "properties": {"select": {"type": "string"}}}},
    {"name": "fails", "result": {"text": WORDS, "isError": True}},
    {
        "name": "declares",
        "_meta": {"anthropic/maxResultSizeChars": 200_000},
        "result": {"text": WORDS},
    },
]


async def asked(proxy: Proxy, client: Client, name: str, **arguments: Any) -> bytes:
    params = json.dumps({"name": name, "arguments": arguments}).encode()
    return await proxy.call("execute_tool", params, Exchange(client))


def handle_of(result: bytes) -> str:
    link = json.loads(result)["content"][-1]
    assert link["uri"] == f"mcpzip-result:{link['name']}"
    return str(link["name"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_large_result_is_kept_and_read_on_over_stdio(fake_mcp: Fake, tmp_path: Path, era: str) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop, begin=False) as client:
        client.begin() if era == "legacy" else client.begin_modern()
        client.finds("log", "shop__log")
        kept = client.execute("shop__log")
        handle = handle_of(kept.raw_result)
        first, image, link = kept.result["content"]
        assert "4,000 lines of text" in first["text"]
        assert image["type"] == "image"
        assert (
            client.execute(handle, {"lines": "3000"}).result["content"][0]["text"] == WORDS.split("\n")[2999]
        )
        assert client.execute(handle, {"path": "x"}).failed
        whole = client.ask("resources/read", {"uri": link["uri"]}).result
        assert whole["contents"][0]["text"] == WORDS
        original = client.execute(handle)
        if era == "legacy":
            assert original.raw_result == BIG.encode()
        else:
            assert {**original.result, "_meta": {}} == {**original.result, **json.loads(BIG), "_meta": {}}
        assert client.execute("shop__small").text == "small"
        unknown = f"mcpzip-result:{handle[:-1]}{'a' if handle[-1] != 'a' else 'b'}"
        error = client.ask("resources/read", {"uri": unknown}).error
        assert error["code"] == -32602
        assert "is not kept any more" in error["message"]
        gone = client.execute(f"{handle[:-1]}{'a' if handle[-1] != 'a' else 'b'}")
        assert gone.failed
        assert "not kept any more. Call the tool" in gone.text
    assert len(shop.record.calls("log")) == 1


async def test_over_http_the_next_request_reads_it_and_another_session_does_not(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    async with proxy_of(tmp_path, shop) as proxy, Bridge(tmp_path, proxy).web() as web:
        log = {"name": "execute_tool", "arguments": {"name": "shop__log"}}
        handle = handle_of((await web.modern("tools/call", log)).raw_result)
        head: Json = {"name": "execute_tool", "arguments": {"name": handle, "arguments": {"head": 1}}}
        part = (await web.modern("tools/call", head)).last["result"]
        assert part["content"][0]["text"] == "line 0 of many words"
        one, other = await web.session(), await web.session()
        head["arguments"]["name"] = handle_of(
            (await one.call(log["name"], arguments=log["arguments"])).raw_result
        )
        assert not (await one.call(head["name"], arguments=head["arguments"])).last["result"].get("isError")
        for reply in (
            await other.call(head["name"], arguments=head["arguments"]),
            await web.modern("tools/call", head),
        ):
            assert reply.last["result"]["isError"]


async def test_another_client_does_not_know_the_handle(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    async with proxy_of(tmp_path, shop) as proxy:
        mine, other, single = Client(Era.LEGACY), Client(Era.LEGACY), Client(Era.MODERN, has_session=False)
        handle = handle_of(await asked(proxy, mine, "shop__log"))
        assert b"line 7 of" in await asked(proxy, mine, handle, lines="8")
        for client in (other, single):
            assert json.loads(await asked(proxy, client, handle, lines="8"))["isError"]
            with pytest.raises(KeptNoMoreError):
                await proxy.tool_caller.results.resource(client, f"mcpzip-result:{handle}")
        theirs = handle_of(await asked(proxy, single, "shop__log"))
        assert json.loads(await asked(proxy, mine, theirs))["isError"]
        await proxy.remove_client(mine)
        assert json.loads(await asked(proxy, mine, handle))["isError"]


async def test_what_is_no_longer_than_its_beginning_is_sent_whole(fake_mcp: Fake, tmp_path: Path) -> None:
    text = "\n".join(WORDS.split("\n")[:95])
    shop = fake_mcp(name="shop", tools=[{"name": "log", "result": {"text": text}}])
    async with proxy_of(tmp_path, shop, results=500) as proxy:
        assert text_of(json.loads(await asked(proxy, Client(Era.LEGACY), "shop__log"))) == text
        assert proxy.statistics.kept == {}


def test_a_kept_result_is_an_argument_of_the_next_call(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    with serving(tmp_path, shop) as client:
        client.finds("log", "shop__log")
        handle = handle_of(client.execute("shop__log").raw_result)
        assert client.execute("shop__send", {"body": {"$kept": handle}, "to": "ann"}).text == "sent"
        assert client.execute("shop__send", {"body": {"$$kept": handle}}).text == "sent"
        gone = client.execute("shop__send", {"body": {"$kept": "r9-aaaaaaaaaaaaaaaa"}})
        assert "not kept any more" in gone.text
    sent = [params["arguments"] for params in shop.record.calls("send")]
    assert sent == [{"body": WORDS, "to": "ann"}, {"body": {"$kept": handle}}]


async def test_what_is_selected_comes_alone_and_the_rest_is_kept(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    async with proxy_of(tmp_path, shop) as proxy:
        client = Client(Era.LEGACY)

        async def select(name: str, path: str) -> Json:
            params = {"name": name, "arguments": {}, "select": path}
            result = await proxy.call("execute_tool", json.dumps(params).encode(), Exchange(client))
            return json.loads(result)  # type: ignore[no-any-return]

        titles, note = (block["text"] for block in (await select("shop__items", "items[].t"))["content"])
        assert titles == '["a","b"]'
        assert note.startswith("This is items[].t of the result. All of it, about ")
        handle = note.split('"')[1]
        whole = json.loads(await asked(proxy, client, handle))["structuredContent"]
        assert whole == {"items": [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]}
        wrong = await select("shop__items", "titles")
        assert wrong["structuredContent"] == whole
        note = wrong["content"][-1]["text"]
        assert note.startswith(
            "Nothing was selected, so this is the whole result. The result has no 'titles'."
        )
        large = await select("shop__log", "x")
        assert large["content"][-1]["text"].startswith("Nothing was selected")
        assert "4,000 lines of text" in large["content"][0]["text"]
        own = await select("shop__query", "x")
        assert "'select' stands beside 'arguments'" in text_of(own)
        failed = await select("shop__fails", "x")
        assert failed["isError"]
    assert len(shop.record.calls()) == 4


async def test_a_call_that_ran_keeps_its_result_when_all_threads_are_busy(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was answered that nothing had been done."""

    async def busy(work: object, name: str) -> None:
        raise OverloadedError

    shop = fake_mcp(name="shop", tools=TOOLS)
    async with proxy_of(tmp_path, shop) as proxy:
        monkeypatch.setattr(kept_results, "run_in_worker", busy)
        assert await asked(proxy, Client(Era.LEGACY), "shop__log") == BIG.encode()
        params = json.dumps({"name": "shop__items", "arguments": {}, "select": "items"}).encode()
        result = await proxy.call("execute_tool", params, Exchange(Client(Era.LEGACY)))
        assert json.loads(result)["structuredContent"]["items"]


async def test_old_results_are_forgotten_though_nobody_calls(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_results, "KEPT_SECONDS", 0.01)
    monkeypatch.setattr("mcpzip.model.limits.KEPT_SECONDS", 0.01)
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=TOOLS)) as proxy:
        handle = handle_of(await asked(proxy, Client(Era.LEGACY), "shop__log"))
        store = proxy.tool_caller.results._store
        assert store is not None
        await comes_true(lambda: not store._entries)
        assert proxy.tool_caller.results._expiry is None
        assert json.loads(await asked(proxy, Client(Era.LEGACY), handle))["isError"]


async def test_a_result_in_a_file_is_read_as_any_other(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (kept_results, limits):
        monkeypatch.setattr(module, "KEPT_IN_MEMORY", 1_000)
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=TOOLS)) as proxy:
        client = Client(Era.LEGACY)
        handle = handle_of(await asked(proxy, client, "shop__log"))
        assert await asked(proxy, client, handle) == BIG.encode()
        sent = await asked(proxy, client, "shop__send", body={"$kept": handle})
        assert text_of(json.loads(sent)) == "sent"


async def test_an_error_stays_one(fake_mcp: Fake, tmp_path: Path) -> None:
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=TOOLS)) as proxy:
        client = Client(Era.LEGACY)
        result = json.loads(await asked(proxy, client, "shop__fails"))
        assert result["isError"]
        assert result["_meta"]["mcpzip/kept"]["tokens"] > 10_000


async def test_what_the_config_or_the_tool_says_is_sent_whole(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=TOOLS)
    async with proxy_of(tmp_path, shop, results={"keep": 500, "tools": {"shop__l*": "off"}}) as proxy:
        client = Client(Era.LEGACY)
        assert await asked(proxy, client, "shop__log") == BIG.encode()
        assert text_of(json.loads(await asked(proxy, client, "shop__declares"))) == WORDS
        assert handle_of(await asked(proxy, client, "shop__fails"))
        assert text_of(await executed(proxy, "shop__fails")) == WORDS  # a command: a person reads it


def test_a_command_prints_all_of_it(fake_mcp: Fake, tmp_path: Path) -> None:
    config = write_config(tmp_path, fake_mcp(name="shop", tools=TOOLS))
    done = run_here("call", "shop__log", "--config", str(config))
    assert WORDS.encode() in done.stdout.replace(b"\r\n", b"\n")


TEXTS = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.just({"type": "image", "data": "aaaa", "mimeType": "image/png"}),
    st.just({"type": "audio", "data": "aaaa", "mimeType": "audio/wav"}),
    st.just({"type": "resource_link", "uri": "a:b", "name": "b"}),
    st.builds(lambda text: {"type": "resource", "resource": {"uri": "a:b", "text": text}}, TEXTS),
    st.just({"type": "resource", "resource": {"uri": "a:b", "blob": "aaaa"}}),
    JSON,
)


@given(
    st.fixed_dictionaries(
        {"content": st.lists(BLOCKS, max_size=6)},
        optional={"structuredContent": JSON, "isError": st.booleans(), "_meta": JSON, "x": JSON},
    ),
    st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_without_arguments_any_result_is_the_bytes_that_came(result: Json, ascii_only: bool) -> None:
    """It is kept or passed on: either way the client can have the very bytes."""
    # Large enough to be kept, whatever the rest is.
    result = {**result, "content": [*result["content"], {"type": "text", "text": "long " * 600}]}
    try:
        raw = json.dumps(result, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        raw = json.dumps(result).encode()
    entry = Entry.parse("a", join_object({"name": quote("b")}))
    config = Config("/c.json", {}, results=ResultsConfig(500))

    async def whole() -> bytes | None:
        results, client = Results(CurrentConfig(config), Statistics()), Client(Era.LEGACY)
        shown = await results.shown(entry, raw, client, "execute_tool")
        if shown == raw:
            return raw
        assert len(shown) < len(raw) + 3_000
        return await results.read(ToolCall(handle_of(shown), b"{}", None), client)

    assert asyncio.run(whole()) == raw
