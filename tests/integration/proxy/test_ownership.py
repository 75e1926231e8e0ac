"""What one person has, no other has: kept results, waiting calls, approvals, what was seen, counts."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from helpers.driver import proxy_of
from helpers.people import ANN, BOB, ISSUER, ask, own, person, tool, use
from mcpzip_fakes.launch import FakeServer
from msgspec.structs import replace

from mcpzip.config.reading import parse
from mcpzip.model.principal import Principal
from mcpzip.server.endpoint import Endpoint

StartFake = Callable[..., FakeServer]

BIG = {"name": "dump", "result": {"text": "a line of a long text\n" * 4_000}}
ASKS = {
    "name": "book",
    "result": {
        "text": "booked for {question.content.people}",
        "ask": {
            "method": "elicitation/create",
            "params": json.dumps(
                {
                    "mode": "form",
                    "message": "For how many?",
                    "requestedSchema": {"type": "object", "properties": {}},
                }
            ),
        },
    },
}  # fmt: skip


@pytest.fixture
async def shop(fake_mcp: StartFake, tmp_path: Path) -> AsyncIterator[tuple[Endpoint, FakeServer]]:
    fake = fake_mcp(name="shop", tools=[BIG, ASKS, tool("sell", "Sell it.")], era="legacy")
    async with proxy_of(tmp_path, fake, policy={"tools": {"shop__sell": "ask"}}) as proxy:
        yield Endpoint(proxy), fake


@pytest.mark.parametrize("other", [BOB, person("ann-2"), Principal("https://other", "ann"), None])
async def test_a_kept_result_is_of_who_called(
    shop: tuple[Endpoint, FakeServer], other: Principal | None
) -> None:
    endpoint, _ = shop
    reply = await ask(endpoint, ANN, "tools/call", use("shop__dump"))
    handle = re.findall(r"r\d+-[a-z2-7]{16}", str(reply))[0]
    requests = [
        ("tools/call", use(handle)),
        ("tools/call", use(handle, lines="1:3")),
        ("resources/read", {"uri": f"mcpzip-result:{handle}"}),
        ("tools/call", use("shop__sell", x={"$kept": handle})),
    ]
    for method, params in requests:
        assert "not kept any more" in str(await ask(endpoint, other, method, params))
    renewed = person("ann", scopes=("more",))  # the same person with another token
    for method, params in requests[:3]:
        assert "a line of a long text" in str(await ask(endpoint, renewed, method, params))


async def test_a_call_that_waits_is_of_who_made_it(shop: tuple[Endpoint, FakeServer]) -> None:
    endpoint, fake = shop
    asked = await ask(endpoint, ANN, "tools/call", use("shop__book"))
    assert asked["resultType"] == "input_required", asked
    (key,) = asked["inputRequests"]
    answered = {
        **use("shop__book"),
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"people": 2}}},
    }
    for other in (BOB, None):
        reply = await ask(endpoint, other, "tools/call", answered)
        assert "of no call that waits" in reply["error"]["message"]
    reply = await ask(endpoint, ANN, "tools/call", answered)
    assert "error" not in reply, reply
    assert len(fake.record.calls("book")) == 1


async def test_a_yes_is_of_who_said_it(shop: tuple[Endpoint, FakeServer]) -> None:
    endpoint, fake = shop
    asked = await ask(endpoint, ANN, "tools/call", use("shop__sell"))
    assert asked["resultType"] == "input_required"
    (key,) = asked["inputRequests"]
    yes = {"requestState": asked["requestState"], "inputResponses": {key: {"action": "accept"}}}
    for other in (BOB, None):
        reply = await ask(endpoint, other, "tools/call", {**use("shop__sell"), **yes})
        assert reply.get("resultType") == "input_required"  # asked anew
    assert fake.record.calls("sell") == []
    assert "sell" in str(await ask(endpoint, ANN, "tools/call", {**use("shop__sell"), **yes}))
    assert len(fake.record.calls("sell")) == 1


async def test_a_kept_result_goes_with_the_right_to_its_tool(fake_mcp: StartFake, tmp_path: Path) -> None:
    fake = fake_mcp(name="shop", tools=[BIG])
    async with proxy_of(tmp_path, fake, access=[{"allow": "shop"}]) as proxy:
        endpoint = Endpoint(proxy)
        reply = await ask(endpoint, ANN, "tools/call", use("shop__dump"))
        handle = re.findall(r"r\d+-[a-z2-7]{16}", str(reply))[0]
        assert "a line of a long text" in str(await ask(endpoint, ANN, "tools/call", use(handle)))
        text = json.dumps({"mcpServers": {"shop": fake.config}, "access": []}).encode()
        proxy.reconfigure(replace(parse(text, proxy.config.path, {}), search=proxy.config.search))
        for params in (use(handle), use("shop__dump", x={"$kept": handle})):
            reply = await ask(endpoint, ANN, "tools/call", params)
            assert "a line of a long text" not in str(reply)
            assert "dump" not in str(reply).replace("shop__dump", "") or "shop__dump" in str(params)


async def test_what_one_has_seen_another_has_not(fake_mcp: StartFake, tmp_path: Path) -> None:
    mail = fake_mcp(name="mail", tools=[tool("read", "Read mail.")])
    web = fake_mcp(name="web", tools=[tool("post", "Post it.")])
    flows = [{"from": "mail", "to": "web", "do": "deny"}]
    async with proxy_of(tmp_path, mail, web, policy={"flows": flows}) as proxy:
        endpoint = Endpoint(proxy)
        await ask(endpoint, ANN, "tools/call", use("mail__read"))
        assert "denied by policy" in str(await ask(endpoint, ANN, "tools/call", use("web__post")))
        assert "denied by policy" not in str(await ask(endpoint, BOB, "tools/call", use("web__post")))


async def test_the_audit_log_says_who_called(fake_mcp: StartFake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[tool("sell", "Sell it.")])
    async with proxy_of(tmp_path, shop, audit=True) as proxy:
        endpoint = Endpoint(proxy)
        await ask(endpoint, ANN, "tools/call", use("shop__sell"))
        await ask(endpoint, None, "tools/call", use("shop__sell"))
    written = await asyncio.to_thread((tmp_path / "audit" / "config.json.audit.jsonl").read_bytes)
    lines = [json.loads(line) for line in written.splitlines()]
    assert lines[0]["principal"] == {"issuer": ISSUER, "subject": "ann", "name": "ann"}
    assert "principal" not in lines[1]


@pytest.mark.parametrize("mode", ["meta", "direct"])
async def test_the_audit_log_has_what_a_person_was_not_let(
    fake_mcp: StartFake, tmp_path: Path, mode: str
) -> None:
    shop = fake_mcp(name="shop", tools=[tool("sell", "Sell it."), tool("look", "Look at it.")])
    access = [{"groups": ["keepers"], "allow": "*"}, {"allow": "shop__look"}]
    more = {"access": access, "audit": True}
    more |= {"expose": "direct"} if mode == "direct" else {"code": {"effects": "allow"}}
    async with proxy_of(tmp_path, shop, **more) as proxy:
        endpoint = Endpoint(proxy)
        if mode == "direct":
            asked = [own("shop__sell", price=7), own("shop__sold"), own("shop__look")]
        else:
            asked = [use("shop__sell", price=7), use("shop__sold")]
            asked += [own("run_code", code=f"return {how}") for how in ("shop__sell()", "call('shop__sell')")]
            asked.append(use("shop__look"))
        for params in asked:
            await ask(endpoint, BOB, "tools/call", params)
        await ask(endpoint, ANN, "tools/call", own("shop__sell") if mode == "direct" else use("shop__sell"))
    written = await asyncio.to_thread((tmp_path / "audit" / "config.json.audit.jsonl").read_bytes)
    lines = [json.loads(line) for line in written.splitlines()]
    found = [
        (line["principal"]["name"], line["tool"], line["outcome"], line.get("rule", "")) for line in lines
    ]
    refused = [("bob", "sell", "no access", "access")] * (1 if mode == "direct" else 3)
    assert found == [*refused, ("bob", "look", "result", ""), ("ann", "sell", "result", "")]
    assert len(shop.record.calls("sell")) == 1


async def test_who_calls_too_often_is_told_when_to_try_again(fake_mcp: StartFake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[tool("sell", "Sell it."), tool("look", "Look at it.")])
    limits = [{"of": "shop__sell", "calls": 2, "seconds": 3_600}]
    async with proxy_of(tmp_path, shop, rate_limits=limits, audit=True, code={"effects": "allow"}) as proxy:
        endpoint = Endpoint(proxy)
        for _ in range(2):
            assert "isError" not in await ask(endpoint, ANN, "tools/call", use("shop__sell"))
        reply = await ask(endpoint, ANN, "tools/call", use("shop__sell"))
        assert reply["isError"]
        assert "Nothing ran: try again in 1800 s" in str(reply)
        assert reply["_meta"]["mcpzip/retryAfter"] == 1_800
        program = own("run_code", code="return shop__sell()")
        assert "2 calls in 3600 s" in str(await ask(endpoint, ANN, "tools/call", program))
        for who in (ANN, BOB, None):
            assert "isError" not in await ask(endpoint, who, "tools/call", use("shop__look"))
        assert "isError" not in await ask(endpoint, BOB, "tools/call", use("shop__sell"))
        for _ in range(5):
            assert "isError" not in await ask(endpoint, None, "tools/call", use("shop__sell"))
    assert len(shop.record.calls("sell")) == 8
    written = await asyncio.to_thread((tmp_path / "audit" / "config.json.audit.jsonl").read_bytes)
    outcomes = [json.loads(line)["outcome"] for line in written.splitlines()]
    assert outcomes.count("rate limited") >= 1
