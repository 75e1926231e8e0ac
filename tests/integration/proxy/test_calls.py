"""A call runs at most once, its outcome is told truly, and nobody else notices."""

import asyncio
import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from unittest.mock import ANY

import pytest
from helpers.driver import (
    LEGACY_SCRIPT,
    Json,
    comes_true,
    exchange,
    executed,
    proxy_of,
    said_by,
    scripted,
    text_of,
)
from mcpzip_fakes.launch import FakeServer

from mcpzip.proxy import first_listings
from mcpzip.proxy.proxy import Proxy
from mcpzip.wire import UpstreamRpcError

Fake = Callable[..., FakeServer]

READS, SAME = {"readOnlyHint": True}, {"idempotentHint": True}
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])


def tool(name: str, annotations: Json | None = None, **result: object) -> Json:
    return {"name": name, "annotations": annotations or {}, "result": result or {"text": "done"}}


def calls(fake: FakeServer) -> list[Json]:
    return [params.get("arguments", {}) for params in fake.record.calls()]


# At most once


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("when", ["before", "middle"])
async def test_a_call_lost_on_the_way_is_not_sent_again(
    fake_mcp: Fake, tmp_path: Path, when: str, era: str
) -> None:
    shop = fake_mcp(
        name="shop", era=era, tools=[tool("pay")], faults=[{"kind": "crash", "when": when, "code": 3}]
    )
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__pay", {"id": 1})
    assert result["isError"]
    assert "it exited with code 3" in text_of(result)
    assert "pay may have run: check before calling it again" in text_of(result)
    assert calls(shop) == [{"id": 1}]


async def test_a_crash_after_the_answer_is_no_loss(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "crash", "when": "after"}
    shop = fake_mcp(name="shop", tools=[tool("pay", text="paid")], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        assert text_of(await executed(proxy, "shop__pay")) == "paid"
    assert len(calls(shop)) == 1


@pytest.mark.parametrize("hints", [READS, SAME])
@pytest.mark.parametrize("when", ["before", "middle"])
async def test_what_does_no_harm_twice_is_sent_once_more(
    fake_mcp: Fake, tmp_path: Path, when: str, hints: Json
) -> None:
    fault = {"kind": "crash", "when": when, "run": 1}
    shop = fake_mcp(name="shop", tools=[tool("look", hints, text="seen")], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        assert text_of(await executed(proxy, "shop__look", {"id": 1})) == "seen"
    assert calls(shop) == [{"id": 1}, {"id": 1}]


@pytest.mark.parametrize(
    ("hints", "said"),
    [(READS, "It only reads: calling it again is safe."), (SAME, "set may have run")],
)
async def test_it_is_sent_once_more_and_no_more(
    fake_mcp: Fake, tmp_path: Path, hints: Json, said: str
) -> None:
    shop = fake_mcp(name="shop", tools=[tool("set", hints)], faults=["crash"])
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__set")
    assert result["isError"]
    assert said in text_of(result)
    assert len(calls(shop)) == 2


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_call_lost_over_http_is_not_sent_again(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    shop = fake_mcp(
        name="shop", transport=transport, tools=[tool("pay")], faults=[{"kind": "crash", "when": "middle"}]
    )
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__pay", {"id": 1})
    assert result["isError"]
    assert "pay may have run: check before calling it again" in text_of(result)
    assert calls(shop) == [{"id": 1}]


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_call_answered_with_a_server_error_may_have_run(
    fake_mcp: Fake, tmp_path: Path, status: int
) -> None:
    fault = {"kind": "status", "tool": "pay", "status": status}
    shop = fake_mcp(name="shop", transport="http", tools=[tool("pay"), tool("other")], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__pay")
        assert str(status) in text_of(result)
        assert "may have run" in text_of(result)
        assert text_of(await executed(proxy, "shop__other")) == "done"
    assert len(shop.record.calls("pay")) == 1


@pytest.mark.parametrize(
    ("status", "said"), [(401, "needs a login"), (403, "credentials"), (413, "413"), (429, "wait")]
)
async def test_a_call_that_was_refused_did_not_run(
    fake_mcp: Fake, tmp_path: Path, status: int, said: str
) -> None:
    fault = {"kind": "status", "tool": "pay", "status": status}
    shop = fake_mcp(name="shop", transport="http", tools=[tool("pay"), tool("other")], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__pay")
        assert said in text_of(result)
        assert "may have run" not in text_of(result)
        assert text_of(await executed(proxy, "shop__other")) == "done"


async def test_a_server_that_forgot_our_session_is_met_anew_and_the_call_runs_once(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    fault = {"kind": "status", "tool": "pay", "status": 404, "nth": 1}
    shop = fake_mcp(
        name="shop", transport="http", era="legacy", tools=[tool("pay", text="paid")], faults=[fault]
    )
    async with proxy_of(tmp_path, shop) as proxy:
        assert text_of(await executed(proxy, "shop__pay")) == "paid"
    assert shop.record.methods().count("initialize") == 2


async def test_a_dead_connection_is_opened_again_before_anything_is_sent(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop = fake_mcp(name="shop", tools=[tool("pay", text="paid")])
    async with proxy_of(tmp_path, shop) as proxy:
        os.kill(shop.record.events("start")[0].pid, signal.SIGKILL)
        await comes_true(lambda: state(proxy, "shop") != "connected")
        assert text_of(await executed(proxy, "shop__pay")) == "paid"
    assert len(calls(shop)) == 1
    assert len(shop.record.events("start")) == 2


def state(proxy: Proxy, name: str) -> str:
    return next(one.state for one in proxy.status() if one.name == name)


async def test_the_call_after_a_crash_works(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[tool("pay", text="paid")], faults=[{"kind": "crash", "run": 1}])
    async with proxy_of(tmp_path, shop) as proxy:
        assert (await executed(proxy, "shop__pay"))["isError"]
        assert text_of(await executed(proxy, "shop__pay")) == "paid"


async def test_all_calls_under_way_are_told_of_a_crash_and_other_servers_go_on(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop = fake_mcp(
        name="shop",
        tools=[tool("wait", delay=60), tool("crash")],
        faults=[{"kind": "crash", "tool": "crash"}],
    )
    bank = fake_mcp(name="bank", tools=[tool("slow", delay=0.2, text="slow"), tool("fast", text="fast")])
    async with proxy_of(tmp_path, shop, bank) as proxy:
        waiting = [asyncio.create_task(executed(proxy, "shop__wait", {"n": n})) for n in range(3)]
        slow = asyncio.create_task(executed(proxy, "bank__slow"))
        await shop.record.until(lambda record: len(record.calls("wait")) == 3)
        lost = [await executed(proxy, "shop__crash"), *await asyncio.gather(*waiting)]
        assert all("may have run" in text_of(result) for result in lost)
        assert text_of(await executed(proxy, "bank__fast")) == "fast"
        assert text_of(await slow) == "slow"
    assert len(bank.record.events("start")) == 1


# Timeouts and cancellation


@TRANSPORTS
async def test_a_timeout_cancels_the_call_upstream(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    shop = fake_mcp(
        name="shop",
        transport=transport,
        tools=[tool("wait", delay=60), tool("look", READS, delay=60), tool("pay")],
    )
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__wait", timeout=1)
        assert "no answer to tools/call within 1 s" in text_of(result)
        assert "wait may have run" in text_of(result)
        result = await executed(proxy, "shop__look", timeout=1)
        assert "calling it again is safe" in text_of(result)
        await shop.record.until(lambda record: len(record.events("cancelled")) == len(record.calls()))
        assert text_of(await executed(proxy, "shop__pay")) == "done"
    assert len(calls(shop)) <= 3


async def test_a_server_and_a_call_have_their_own_timeouts(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[tool("wait", delay=0.4)])
    others = {"shop": {**shop.config, "timeout": 0.2}}
    async with proxy_of(tmp_path, shop, others=others, call_timeout_seconds=0.1) as proxy:
        assert "within 0.2 s" in text_of(await executed(proxy, "shop__wait"))
        assert text_of(await executed(proxy, "shop__wait", timeout=30)) == "ok"


@pytest.mark.parametrize(
    ("transport", "era"),
    [("stdio", "legacy"), ("stdio", "modern"), ("http", "legacy"), ("http", "modern"), ("sse", "legacy")],
)
async def test_a_cancelled_call_is_cancelled_upstream(
    fake_mcp: Fake, tmp_path: Path, transport: str, era: str
) -> None:
    shop = fake_mcp(name="shop", transport=transport, era=era, tools=[tool("wait", delay=60), tool("pay")])
    async with proxy_of(tmp_path, shop) as proxy:
        call = asyncio.create_task(executed(proxy, "shop__wait"))
        await shop.record.until(lambda record: record.calls("wait"))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await shop.record.until(lambda record: record.events("cancelled"))
        assert text_of(await executed(proxy, "shop__pay")) == "done"


async def test_a_call_cancelled_while_its_server_starts_leaves_the_connection_to_others(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop = fake_mcp(name="shop", tools=[tool("pay", text="paid")])
    async with proxy_of(tmp_path, shop):
        pass
    slow = fake_mcp(shop.scenario, faults=[{"kind": "slow-start", "seconds": 0.4}])
    others = {"shop": slow.config}
    async with proxy_of(tmp_path, shop, others=others, listed=False) as proxy:
        first, second = (asyncio.create_task(executed(proxy, "shop__pay", {"n": n})) for n in range(2))
        await slow.record.until(lambda record: record.events("start"))
        first.cancel()
        assert text_of(await second) == "paid"
    assert calls(slow) == [{"n": 1}]
    assert len(slow.record.events("start")) == 1


async def test_a_call_waits_for_the_server_it_names_where_a_search_would_go_on(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Once it gave up after as long as a search does: a server that npx fetches first takes longer.
    monkeypatch.setattr(first_listings, "FIRST_LISTING", 0.01)
    shop = fake_mcp(
        name="shop", tools=[tool("pay", text="paid")], faults=[{"kind": "slow-start", "seconds": 0.4}]
    )
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        listing = asyncio.create_task(proxy.refresh())
        await shop.record.until(lambda record: record.events("start"))
        late = asyncio.create_task(executed(proxy, "shop__pay", timeout=0.01))
        paid = asyncio.create_task(executed(proxy, "shop__pay"))
        found = await said_by(proxy, "search_tools", {"query": "pay"})
        assert "still starting, their tools are not in this answer: shop" in text_of(found)
        assert "it is still starting" in text_of(await late)
        assert text_of(await paid) == "paid"
        await listing
    assert len(calls(shop)) == 1


async def test_of_a_server_that_failed_the_reason_is_told_also_while_it_is_tried_again(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    # Once "it is still starting" came in the place of the reason, for as long as the next try took.
    starts = tmp_path / "starts"
    dies = {"kind": "exit-at-once", "text": "no token", "until": str(starts)}
    slow = {"kind": "slow-start", "seconds": 30}
    shop = fake_mcp(name="shop", tools=[tool("pay")], faults=[dies, slow])
    async with proxy_of(tmp_path, shop) as proxy:
        assert proxy.status()[0].state == "failing"
        before = len(shop.record.events("start"))
        starts.touch()
        listing = asyncio.create_task(proxy.refresh())
        await shop.record.until(lambda record: len(record.events("start")) > before)
        assert "no token" in text_of(await executed(proxy, "shop__pay"))
        found = text_of(await said_by(proxy, "search_tools", {"query": "pay"}))
        assert "no token" in found
        assert "still starting" not in found
        listing.cancel()


# Many at a time


@TRANSPORTS
async def test_many_calls_at_a_time_get_their_own_answers(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    shop = fake_mcp(
        name="shop",
        transport=transport,
        tools=[tool(f"t{n}", echo=True, delay=0.03 * n) for n in range(8)],
    )
    async with proxy_of(tmp_path, shop) as proxy:
        wanted = [(f"shop__t{n % 8}", {"n": n}) for n in range(16 if transport == "sse" else 64)]
        random.Random(7).shuffle(wanted)
        results = await asyncio.gather(*(executed(proxy, name, arguments) for name, arguments in wanted))
    assert [json.loads(text_of(result)) for result in results] == [arguments for _, arguments in wanted]
    assert len(calls(shop)) == len(wanted)


@TRANSPORTS
async def test_five_megabytes_come_whole(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    shop = fake_mcp(
        name="shop", transport=transport, tools=[tool("big", size=5_000_000), tool("echo", echo=True)]
    )
    async with proxy_of(tmp_path, shop) as proxy:
        assert text_of(await executed(proxy, "shop__big")) == "x" * 5_000_000
        text = "y" * 2_000_000
        assert json.loads(text_of(await executed(proxy, "shop__echo", {"text": text}))) == {"text": text}


@TRANSPORTS
async def test_progress_arrives_in_order_and_before_the_result(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    steps = [{"progress": n / 2, "total": 10, "message": f"step {n}"} for n in range(1, 21)]
    shop = fake_mcp(name="shop", transport=transport, tools=[tool("work", text="done", progress=steps)])
    heard: list[Json] = []
    async with proxy_of(tmp_path, shop) as proxy:
        arguments = json.dumps({"name": "shop__work"}).encode()
        asking = exchange(on_progress=lambda params: heard.append(json.loads(params)))
        await proxy.call("execute_tool", arguments, asking)
        seen = list(heard)  # none comes after the result
    assert [{key: told[key] for key in ("progress", "total", "message")} for told in seen] == steps


async def test_without_a_listener_no_progress_is_asked_for(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[tool("pay")])
    async with proxy_of(tmp_path, shop) as proxy:
        await executed(proxy, "shop__pay")
    (call,) = shop.record.calls("pay")
    assert "progressToken" not in call.get("_meta", {})


# Lossless

ODD_RESULT = (
    '{"z":1,"content":[{"type":"text","text":"\\u00e4 ä"},{"type":"new-kind","x":1.0,"y":1e5}],'
    '"structuredContent":{"b":12345678901234567890,"a":0.10,"n":null,"e":-0},"isError":false,'
    '"unknown":{"k":[ 1 , 2 ]},"_meta":{"com.example/x":1.50}}'
)


async def test_a_legacy_stdio_result_passes_byte_for_byte(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", era="legacy", tools=[tool("odd", raw=ODD_RESULT)])
    async with proxy_of(tmp_path, shop) as proxy:
        raw = await proxy.call("execute_tool", b'{"name":"shop__odd"}', exchange())
    assert raw.decode() == ODD_RESULT


async def test_half_a_character_passes_too(tmp_path: Path) -> None:
    """A lone surrogate: real tools emit them when they cut a text."""
    result = r'{"content":[{"type":"text","text":"cut \ud83d"}]}'
    each = (
        f'{LEGACY_SCRIPT}elif method == "tools/call":\n'
        """    print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (m["id"], """
        f"{result!r}), flush=True)"
    )
    async with proxy_of(tmp_path, others={"shop": scripted(each)}) as proxy:
        raw = await proxy.call("execute_tool", b'{"name":"shop__pay"}', exchange())
    assert raw.decode() == result


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_http_result_is_equal_as_json(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    shop = fake_mcp(name="shop", era="legacy", transport=transport, tools=[tool("odd", raw=ODD_RESULT)])
    async with proxy_of(tmp_path, shop) as proxy:
        raw = await proxy.call("execute_tool", b'{"name":"shop__odd"}', exchange())
    assert spelled(json.loads(raw)) == spelled(json.loads(ODD_RESULT))


def spelled(value: object) -> str:
    """Key order and the difference between 1 and 1.0 count."""
    return json.dumps(value, ensure_ascii=False)


async def test_arguments_and_meta_reach_a_stdio_server_byte_for_byte(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", era="legacy", tools=[tool("echo", echo=True)])
    arguments = '{"z":1.0,"a":12345678901234567890,"u":"ä\\u00e4\U0001f600","n":null,"l":[ 1e2 ]}'
    async with proxy_of(tmp_path, shop) as proxy:
        raw = f'{{"name":"shop__echo","arguments":{arguments}}}'.encode()
        meta = b'{"progressToken":5,"com.example/trace":1.50}'
        result = json.loads(await proxy.call("execute_tool", raw, exchange(meta=meta)))
    assert text_of(result) == arguments
    assert shop.record.calls("echo")[0]["_meta"] == {"com.example/trace": 1.5, "progressToken": ANY}
    assert (
        shop.record.calls("echo")[0]["_meta"]["progressToken"] != 5
    )  # it is the client's, and not unique here


@TRANSPORTS
async def test_a_tool_that_fails_says_so_itself(fake_mcp: Fake, tmp_path: Path, transport: str) -> None:
    shop = fake_mcp(name="shop", transport=transport, tools=[tool("pay", text="no money", isError=True)])
    async with proxy_of(tmp_path, shop) as proxy:
        result = await executed(proxy, "shop__pay")
    assert (result["isError"], text_of(result)) == (True, "no money")


@TRANSPORTS
@pytest.mark.parametrize("data", [None, '{"why":[1.0,null]}'])
async def test_an_error_keeps_code_message_and_data(
    fake_mcp: Fake, tmp_path: Path, transport: str, data: str | None
) -> None:
    error = {"code": -31999, "message": "no “money”", **({"data": data} if data else {})}
    shop = fake_mcp(name="shop", transport=transport, tools=[tool("pay", error=error)])
    async with proxy_of(tmp_path, shop) as proxy:
        with pytest.raises(UpstreamRpcError) as caught:
            await executed(proxy, "shop__pay")
    assert (caught.value.error.code, caught.value.error.message) == (-31999, "no “money”")
    assert (caught.value.error.data and json.loads(caught.value.error.data)) == (data and json.loads(data))


@pytest.mark.parametrize(
    "name", ["a__b", "a.b/c", "with space", "Ünïcödé \U0001f600", "__", "-", "x" * 300, 'a"b\\c']
)
async def test_a_tool_of_any_name_can_be_called(fake_mcp: Fake, tmp_path: Path, name: str) -> None:
    shop = fake_mcp(name="shop", tools=[tool(name, text=f"this is {name}")])
    async with proxy_of(tmp_path, shop) as proxy:
        assert text_of(await executed(proxy, f"shop__{name}")) == f"this is {name}"


# What else comes over a pipe


@pytest.mark.parametrize("kind", ["junk", "invalid-utf8", "duplicate", "torn"])
async def test_what_else_is_on_the_pipe_hurts_nobody(fake_mcp: Fake, tmp_path: Path, kind: str) -> None:
    shop = fake_mcp(name="shop", tools=[tool("pay", echo=True)], faults=["banner", kind])
    async with proxy_of(tmp_path, shop) as proxy:
        for n in range(3):
            assert json.loads(text_of(await executed(proxy, "shop__pay", {"n": n}))) == {"n": n}
    assert len(calls(shop)) == 3


async def test_an_answer_under_a_wrong_id_is_nobodys(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[tool("pay")], faults=[{"kind": "wrong-id", "nth": 1}])
    async with proxy_of(tmp_path, shop) as proxy:
        assert "no answer" in text_of(await executed(proxy, "shop__pay", timeout=0.3))
        assert text_of(await executed(proxy, "shop__pay")) == "done"


async def test_a_server_whose_child_keeps_its_pipes_is_known_to_be_dead(tmp_path: Path) -> None:
    """Its output never ends: the call waited for its whole timeout, and so did every call after it."""
    each = LEGACY_SCRIPT + 'elif method == "tools/call":\n    subprocess.Popen(["sleep", "60"]); os._exit(5)'
    async with proxy_of(tmp_path, others={"shop": scripted(each)}) as proxy:
        result = await asyncio.wait_for(executed(proxy, "shop__pay"), 10)
        assert "it exited with code 5" in text_of(result)
        assert "may have run" in text_of(result)


async def test_a_server_that_stops_reading_does_not_stop_us(fake_mcp: Fake, tmp_path: Path) -> None:
    each = LEGACY_SCRIPT + 'elif method == "tools/call": time.sleep(60)'
    bank = fake_mcp(name="bank", tools=[tool("pay", text="paid")])
    async with proxy_of(tmp_path, bank, others={"shop": scripted(each)}) as proxy:
        text = "x" * 1_000_000
        stuck = [
            asyncio.create_task(executed(proxy, "shop__pay", {"text": text}, timeout=0.5)) for _ in range(3)
        ]
        assert text_of(await executed(proxy, "bank__pay")) == "paid"
        assert all("no answer" in text_of(result) for result in await asyncio.gather(*stuck))


async def test_questions_a_server_asks_are_answered_at_once(tmp_path: Path) -> None:
    each = LEGACY_SCRIPT + (
        'elif method == "tools/call":\n'
        '    call = m["id"]; say(id="p", method="ping"); say(id="q", method="roots/list")\n'
        'elif m.get("id") == "p": first = m["result"]\n'
        'elif m.get("id") == "q":\n'
        '    say(id=call, result={"content": [], "first": first, "second": m["error"]["code"]})'
    )
    async with proxy_of(tmp_path, others={"shop": scripted(each)}) as proxy:
        result = await executed(proxy, "shop__pay", timeout=10)
    assert (result["first"], result["second"]) == ({}, -32601)
