"""The catalog follows the servers: what they list is found, what they can't list is kept and called stale."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import (
    Json,
    comes_true,
    executed,
    family,
    few_listings,
    proxy_of,
    said_by,
    scripted,
    snapshot_of,
    text_of,
)
from mcpzip_fakes.launch import FakeServer

from mcpzip.proxy.proxy import Proxy

Fake = Callable[..., FakeServer]

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
SEND: Json = {"name": "send_message", "description": "Send a message to a channel"}
PAY: Json = {"name": "pay_invoice", "description": "Pay an invoice"}


async def search(proxy: Proxy, query: str, **more: object) -> str:
    return text_of(await said_by(proxy, "search_tools", {"query": query, **more}))


async def describe(proxy: Proxy, name: str) -> str:
    return text_of(await said_by(proxy, "describe_tool", {"name": name}))


def names(proxy: Proxy) -> list[str]:
    return [entry.name for entry in proxy.catalog.entries]


# Paging


@pytest.mark.parametrize("transport", ["stdio", "http", "sse"])
@pytest.mark.parametrize("faults", [[], ["empty-cursor"]])
async def test_all_pages_are_listed(
    fake_mcp: Fake, tmp_path: Path, transport: str, faults: list[str]
) -> None:
    """A cursor may be the empty string."""
    tools = [f"tool_{n}" for n in range(7)]
    shop = fake_mcp(name="shop", transport=transport, tools=tools, page_size=2, faults=faults)
    async with proxy_of(tmp_path, shop) as proxy:
        assert names(proxy) == [f"shop__{tool}" for tool in tools]
    cursors = [line.params.get("cursor") for line in shop.record.received("tools/list")]
    assert cursors == [None, "" if faults else "page-2", "page-3", "page-4"]


async def test_a_list_that_goes_in_circles_is_an_error(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=["a", "b", "c"], page_size=1, faults=["cursor-loop"])
    async with proxy_of(tmp_path, shop) as proxy:
        (one,) = proxy.status()
        assert one.state == "failing"
        assert "goes in circles" in one.reason
        assert names(proxy) == []


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("{}", "has no 'tools'"),
        ('{"tools":null}', "has no 'tools'"),
        ('{"tools":5}', "makes no sense"),
        ("[]", "makes no sense"),
        ("null", "makes no sense"),
        ('{"tools":[],"nextCursor":5}', "makes no sense"),
        ('{"tools":[],"nextCursor":"again"}', "goes in circles"),
    ],
)
async def test_a_list_that_is_none_is_an_error(tmp_path: Path, result: str, said: str) -> None:
    each = (
        'if method == "server/discover": refuse()\n'
        'elif method == "initialize": greet()\n'
        f'elif method == "tools/list": answer(json.loads({result!r}))'
    )
    async with proxy_of(tmp_path, others={"shop": scripted(each)}) as proxy:
        (one,) = proxy.status()
        assert one.state == "failing"
        assert said in one.reason


# Stale, empty, changed


async def test_a_server_that_fails_keeps_its_last_tools(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "error", "method": "tools/list", "nth": 2, "message": "database is down", "code": -32050}
    shop = fake_mcp(name="shop", tools=[PAY], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        await proxy.refresh()
        assert names(proxy) == ["shop__pay_invoice"]
        assert "database is down" in await search(proxy, "pay an invoice")
        assert "database is down" in await describe(proxy, "shop__pay_invoice")
        (one,) = proxy.status()
        assert (one.state, one.tools) == ("failing", 1)
        assert "database is down" in one.reason
        assert text_of(await executed(proxy, "shop__pay_invoice")) == "{}"
    kept = snapshot_of(tmp_path / "config.json")["shop"]
    assert "database is down" in kept["error"]
    assert kept["stale_since"] > kept["fetched_at"]


async def test_another_processes_failure_is_not_current(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "error", "method": "tools/list", "nth": 2, "message": "database is down", "code": -32050}
    shop = fake_mcp(name="shop", tools=[PAY], faults=[fault])
    gone: Json = {"command": "no-such-command-anywhere"}
    async with proxy_of(tmp_path, shop, others={"gone": gone}) as proxy:
        await proxy.refresh()
        assert [one.state for one in proxy.status()] == ["failing", "failing"]
    async with proxy_of(tmp_path, shop, others={"gone": gone}, listed=False) as proxy:
        told = {one.name: one for one in proxy.status()}
        assert (told["shop"].state, told["shop"].reason) == ("idle", "")
        assert "database is down" not in await search(proxy, "pay an invoice")
        # Of a server without tools it is all that is known.
        assert told["gone"].state == "failing"
        assert told["gone"].reason.startswith(
            "last time: the command 'no-such-command-anywhere' was not found"
        )
        await proxy.refresh()
        assert [one.reason.partition(" was not")[0] for one in proxy.status()] == [
            "the command 'no-such-command-anywhere'",
            "",
        ]


async def test_clients_with_different_variables_share_the_tools(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a client with fewer variables, everybody was told that the configuration had changed."""
    shop = fake_mcp(name="shop", tools=[PAY])
    config = {**shop.config, "env": {**shop.config.get("env", {}), "SHOP_TOKEN": "${SHOP_TOKEN}"}}
    monkeypatch.setenv("SHOP_TOKEN", "first-account")
    async with proxy_of(tmp_path, others={"shop": config}) as proxy:
        assert names(proxy) == ["shop__pay_invoice"]

    monkeypatch.delenv("SHOP_TOKEN")
    why = "${SHOP_TOKEN} is not set here; it was when its tools were listed. Set it where mcpzip is started"
    async with proxy_of(tmp_path, others={"shop": config}, listed=False) as proxy:
        (one,) = proxy.status()
        assert (one.state, one.tools, one.reason) == ("failing", 1, why)
        assert why in await search(proxy, "pay an invoice")
        assert text_of(await executed(proxy, "shop__pay_invoice")) == f"shop: {why}."
        await proxy.refresh()
        assert proxy.status()[0].reason == why

    monkeypatch.setenv("SHOP_TOKEN", "second-account")
    async with proxy_of(tmp_path, others={"shop": config}, listed=False) as proxy:
        (one,) = proxy.status()
        assert (one.state, one.tools, one.reason) == ("idle", 1, "")
        assert text_of(await executed(proxy, "shop__pay_invoice")) == "{}"


async def test_a_server_that_is_back_is_listed_anew(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "error", "method": "tools/list", "nth": 2}
    shop = fake_mcp(name="shop", tools=[PAY], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        await proxy.refresh()
        assert proxy.status()[0].state == "failing"
        await executed(proxy, "shop__pay_invoice")  # it answers: so it is asked again
        await comes_true(lambda: proxy.status()[0].state == "connected")
        assert "not live" not in await search(proxy, "pay an invoice")


async def test_a_server_that_lists_nothing_has_nothing(fake_mcp: Fake, tmp_path: Path) -> None:
    full = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, full) as proxy:
        assert names(proxy) == ["shop__pay_invoice"]
    empty = fake_mcp(name="shop", tools=[])
    async with proxy_of(tmp_path, empty, listed=False) as proxy:
        assert names(proxy) == ["shop__pay_invoice"]
        await proxy.refresh()
        assert names(proxy) == []
        assert proxy.status()[0].state == "connected"
        assert "shop__" not in await search(proxy, "pay an invoice")
        assert (await executed(proxy, "shop__pay_invoice"))["isError"]


@ERAS
async def test_a_list_that_changed_is_listed_again(fake_mcp: Fake, tmp_path: Path, era: str) -> None:
    shop = fake_mcp(
        name="shop", era=era, tools=[PAY], changed_tools=[SEND], faults=[{"kind": "list-changed", "nth": 1}]
    )
    async with proxy_of(tmp_path, shop) as proxy:
        if era == "modern":
            await shop.record.until(lambda record: record.received("subscriptions/listen"))
        await executed(proxy, "shop__pay_invoice")
        await comes_true(lambda: names(proxy) == ["shop__send_message"])
        assert "shop__send_message" in await search(proxy, "send a message")
    (told,) = [line for line in shop.record.sent() if line.method.endswith("list_changed")]
    asked = [line for line in shop.record.received("tools/list") if line.time > told.time]
    assert asked[0].time - told.time < 5.0  # s, of which 0.2 are meant: machines are shared


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_list_that_changed_over_http_is_listed_again(
    fake_mcp: Fake, tmp_path: Path, transport: str
) -> None:
    shop = fake_mcp(
        name="shop",
        transport=transport,
        tools=[PAY],
        changed_tools=[SEND],
        faults=[{"kind": "list-changed", "nth": 1}],
    )
    async with proxy_of(tmp_path, shop) as proxy:
        if transport == "http":
            await shop.record.until(lambda record: record.received("subscriptions/listen"))
        await executed(proxy, "shop__pay_invoice")
        await comes_true(lambda: names(proxy) == ["shop__send_message"])


async def test_a_burst_of_changes_costs_one_listing(fake_mcp: Fake, tmp_path: Path) -> None:
    fault = {"kind": "list-changed", "nth": 1, "count": 300}
    shop = fake_mcp(name="shop", era="legacy", tools=[PAY], changed_tools=[SEND], faults=[fault])
    async with proxy_of(tmp_path, shop) as proxy:
        await executed(proxy, "shop__pay_invoice")
        await comes_true(lambda: names(proxy) == ["shop__send_message"])
    assert few_listings(shop)


async def test_a_server_that_never_stops_changing_is_listed_all_the_same(tmp_path: Path) -> None:
    """Each notification put the listing off."""
    each = (
        'if method == "server/discover": refuse()\n'
        'elif method == "initialize": greet()\n'
        'elif method == "tools/list": listed += 1; answer({"tools": [{"name": f"tool_{listed}"}]})\n'
        'elif method == "tools/call": answer({}); threading.Thread(target=chatter, daemon=True).start()'
    )
    before = (
        "import threading\nlisted = 0\n"
        "def chatter():\n"
        "    while True:\n"
        '        say(method="notifications/tools/list_changed"); time.sleep(0.05)'
    )
    async with proxy_of(tmp_path, others={"shop": scripted(each, before)}) as proxy:
        assert names(proxy) == ["shop__tool_1"]
        await executed(proxy, "shop__tool_1")
        await comes_true(lambda: "shop__tool_3" in names(proxy))


async def test_changes_during_a_listing_bring_one_more(tmp_path: Path) -> None:
    """Each of them brought one."""
    go = tmp_path / "go"
    each = (
        'if method == "server/discover": refuse()\n'
        'elif method == "initialize": greet()\n'
        'elif method == "tools/list":\n'
        "    listed += 1\n"
        '    if listed == 1: say(method="notifications/tools/list_changed")\n'
        f"    while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        '    answer({"tools": [{"name": f"tool_{listed}"}]})'
    )
    async with proxy_of(tmp_path, others={"shop": scripted(each, "listed = 0")}, listed=False) as proxy:
        listing = asyncio.create_task(proxy.refresh())
        await comes_true(lambda: proxy._refresher._again)
        for _ in range(5):
            proxy._refresher._relist("shop")
        go.touch()
        await listing
        await comes_true(lambda: names(proxy) == ["shop__tool_2"])
        await proxy.refresh()
        assert names(proxy) == ["shop__tool_3"]


async def test_ending_while_a_change_is_due_starts_nothing_and_blames_nobody(tmp_path: Path) -> None:
    """The listing that was due began after the end, failed of it, and the failure was kept on disk."""
    each = (
        'if method == "server/discover": refuse()\n'
        'elif method == "initialize": greet()\n'
        'elif method == "tools/list":\n'
        '    answer({"tools": [{"name": "pay"}]}) if not listed else time.sleep(60)\n'
        "    listed += 1\n"
        'elif method == "tools/call": answer({}); say(method="notifications/tools/list_changed")'
    )
    async with proxy_of(tmp_path, others={"shop": scripted(each, "listed = 0")}) as proxy:
        hanging = asyncio.create_task(proxy.refresh())
        await executed(proxy, "shop__pay", timeout=0.1)
        proxy._refresher.changed("shop")
        proxy._refresher._relist("shop")  # its time has come: it waits for the listing under way
        await proxy.close()
        await asyncio.gather(hanging, return_exceptions=True)
    assert "error" not in snapshot_of(tmp_path / "config.json")["shop"]


# What the config hides


async def test_a_disabled_server_is_invisible(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, shop):
        pass
    started = len(family(shop))
    async with proxy_of(tmp_path, others={"shop": {**shop.config, "disabled": True}}, listed=False) as proxy:
        proxy.start()
        assert names(proxy) == []
        assert "shop__" not in await search(proxy, "pay an invoice")
        assert "no tool" in await describe(proxy, "shop__pay_invoice")
        assert "no tool" in text_of(await executed(proxy, "shop__pay_invoice"))
        assert proxy.status()[0].state == "disabled"
    assert len(family(shop)) == started


@pytest.mark.parametrize(
    ("tools", "shown"),
    [
        ({"allow": ["pay_*"]}, ["pay_invoice"]),
        ({"deny": ["pay_*"]}, ["send_message"]),
        ({"allow": ["*"], "deny": ["send_message"]}, ["pay_invoice"]),
        ({"allow": []}, []),
        ({"allow": ["PAY_*"]}, []),
    ],
)
async def test_tools_that_are_not_allowed_cannot_be_found_described_or_run(
    fake_mcp: Fake, tmp_path: Path, tools: Json, shown: list[str]
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, SEND])
    async with proxy_of(tmp_path, others={"shop": {**shop.config, "tools": tools}}) as proxy:
        for tool in (PAY, SEND):
            name = f"shop__{tool['name']}"
            seen = [
                f"{name}:" in await search(proxy, tool["description"]),
                "no tool" not in await describe(proxy, name),
                not (await executed(proxy, name)).get("isError", False),
            ]
            assert seen == [tool["name"] in shown] * 3
    assert [params["name"] for params in shop.record.calls()] == shown
    assert len(snapshot_of(tmp_path / "config.json")["shop"]["tools"]) == 2


async def test_a_server_gone_from_the_config_is_gone(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, bank = fake_mcp(name="shop", tools=[PAY]), fake_mcp(name="bank", tools=[SEND])
    async with proxy_of(tmp_path, shop, bank):
        pass
    async with proxy_of(tmp_path, bank, listed=False) as proxy:
        assert names(proxy) == ["bank__send_message"]


# Names and words that lead nowhere


async def test_an_unknown_name_is_answered_with_the_nearest(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, SEND])
    async with proxy_of(tmp_path, shop) as proxy:
        for near in ("shop__pay_bill", "pay_invoices_now", "bank__pay_invoice"):
            assert "shop__pay_invoice" in await describe(proxy, near)
            result = await executed(proxy, near)
            assert result["isError"]
            assert "shop__pay_invoice" in text_of(result)
        nothing = text_of(await executed(proxy, "zzzz"))
        assert nothing == "There is no tool 'zzzz'. Find tools with search_tools."
    assert shop.record.calls() == []


@pytest.mark.parametrize("near", ["shop__pay_invoise", "pay_invoice", "Shop.PayInvoice", "shop__payinvoice"])
async def test_a_name_that_can_only_mean_one_tool_is_mended_and_the_mending_told(
    fake_mcp: Fake, tmp_path: Path, near: str
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, SEND])
    async with proxy_of(tmp_path, shop) as proxy:
        assert "shop__pay_invoice" in await describe(proxy, near)
        result = await executed(proxy, near, {"id": 7})
    assert not result.get("isError")
    assert result["_meta"]["mcpzip/repair"] == [f"name: {near} → shop__pay_invoice"]
    assert [call["arguments"] for call in shop.record.calls("pay_invoice")] == [{"id": 7}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "xyzzy"}, ["'xyzzy'", "shop"]),
        ({"query": ""}, ["The query is empty", "shop"]),
        ({"query": "   "}, ["The query is empty"]),
        ({"query": "pay", "server": "nobody"}, ["There is no server 'nobody'", "shop"]),
    ],
)
async def test_a_query_that_matches_nothing_says_why(
    fake_mcp: Fake, tmp_path: Path, arguments: Json, said: list[str]
) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, SEND])
    async with proxy_of(tmp_path, shop) as proxy:
        result = await said_by(proxy, "search_tools", arguments)
        assert not result.get("isError")
        assert all(part in text_of(result) for part in said), text_of(result)


@pytest.mark.parametrize("others", [{}, {"bad": {"command": "no-such-command-anywhere"}}])
async def test_without_any_tool_search_says_so(tmp_path: Path, others: Json) -> None:
    """Of servers without tools it said "Servers: ."."""
    async with proxy_of(tmp_path, others=others) as proxy:
        assert (await search(proxy, "pay")).startswith("There are no tools yet. Call proxy_status")


@pytest.mark.parametrize("keys", [{}, {"expose": "direct"}])
async def test_our_own_tools_run_without_execute_tool_too(fake_mcp: Fake, tmp_path: Path, keys: Json) -> None:
    """Replies say "see proxy_status"; called by that name it was unknown."""
    async with proxy_of(tmp_path, fake_mcp(name="shop", tools=[PAY]), **keys) as proxy:
        assert "1 servers, 1 tools" in text_of(await said_by(proxy, "proxy_status", {}))
        assert "1 servers, 1 tools" in text_of(await said_by(proxy, "proxy_refresh", {}))


async def test_our_own_tools_are_found_described_and_run(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, shop) as proxy:
        assert "proxy_status" in await search(proxy, "status of the proxy")
        assert "proxy_refresh" in await describe(proxy, "proxy_refresh")
        assert "1 servers, 1 tools" in text_of(await executed(proxy, "proxy_status"))
        before = len(shop.record.received("tools/list"))
        await executed(proxy, "proxy_refresh")
        assert len(shop.record.received("tools/list")) == before + 1


async def test_a_refresh_does_not_wait_for_ever_for_a_silent_server(fake_mcp: Fake, tmp_path: Path) -> None:
    """The model waited for half a minute, whatever timeout it gave."""
    shop, silent = fake_mcp(name="shop", tools=[PAY]), fake_mcp(name="silent", faults=["silence"])
    async with proxy_of(tmp_path, shop, silent, listed=False) as proxy:
        await proxy.refresh(["shop"])
        status = text_of(await executed(proxy, "proxy_refresh", timeout=0.5))
        assert "shop: connected, 1 tools" in status
        assert "silent: connecting" in status


# On disk


async def test_what_was_listed_is_there_after_a_restart(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY, SEND])
    async with proxy_of(tmp_path, shop):
        pass
    started = len(family(shop))
    async with proxy_of(tmp_path, shop, listed=False) as proxy:
        assert "shop__pay_invoice" in await search(proxy, "pay an invoice")
        definition = json.loads((await describe(proxy, "shop__pay_invoice")).splitlines()[0])
        assert definition["description"] == PAY["description"]
    assert len(family(shop)) == started


async def test_it_is_on_disk_before_the_end(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    async with proxy_of(tmp_path, shop):
        kept = await comes_true(lambda: snapshot_of(tmp_path / "config.json"))
        assert [tool["name"] for tool in kept["shop"]["tools"]] == ["pay_invoice"]


async def test_a_disk_that_refuses_is_told_once(fake_mcp: Fake, tmp_path: Path) -> None:
    """Nobody was told."""
    shop = fake_mcp(name="shop", tools=[PAY])
    (tmp_path / "cache").write_text("not a folder")
    warnings: list[str] = []
    async with proxy_of(tmp_path, shop, warn=warnings.append) as proxy:
        await comes_true(lambda: warnings)
        await proxy.refresh()
        assert "shop__pay_invoice" in await search(proxy, "pay an invoice")
    assert len(warnings) == 1
    assert "can't be written" in warnings[0]


@pytest.mark.parametrize("spelt", ["Proxy_Status", "proxy-status", "proxyStatus", "PROXY.STATUS"])
async def test_our_own_tools_are_ours_however_they_are_spelt(
    fake_mcp: Callable[..., FakeServer], tmp_path: Path, spelt: str
) -> None:
    """They ran the tool that a server had called so, and what it said was taken for the status."""
    evil = fake_mcp(name="evil", tools=["proxy_status", "proxy_refresh"])
    async with proxy_of(tmp_path, evil) as proxy:
        result = await executed(proxy, spelt)
        assert text_of(result).startswith("1 servers, 2 tools\nevil: connected")
        assert result["_meta"]["mcpzip/repair"] == [f"name: {spelt} → proxy_status"]
        described = text_of(await said_by(proxy, "describe_tool", {"name": spelt}))
        assert described.startswith("proxy_status: ")
    assert evil.record.calls() == []


async def test_a_server_called_proxy_keeps_its_own(
    fake_mcp: Callable[..., FakeServer], tmp_path: Path
) -> None:
    tools = [{"name": "status", "result": {"text": "green"}}]
    async with proxy_of(tmp_path, fake_mcp(name="proxy", tools=tools)) as proxy:
        assert text_of(await executed(proxy, "proxy-status")) == "green"
        assert "1 servers" in text_of(await executed(proxy, "proxy_status"))
