"""What a person may not use is not there for them: not in lists, searches, calls, programs or errors.

The strongest form: whoever may use a part gets, for any request, the very reply of a proxy that has only this
part.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from helpers.driver import comes_true, proxy_of
from helpers.people import BOB, FORM, Json, ask, own, person, tool, use
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcpzip_fakes.launch import FakeServer
from msgspec.structs import replace

from mcpzip.config.reading import parse
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.endpoint import Endpoint
from mcpzip.wire import Era

StartFake = Callable[..., FakeServer]

SHOWN = [
    tool("file_memo", "File a memo in the archive."),
    tool("find_memo", "Find memos by a word in their text.", annotations={"readOnlyHint": True}),
    tool("send_letter", "Send a letter by mail."),
]
HIDDEN = [
    tool("shred_platypus", "Shred the memos about the platypus."),
    tool("mail_platypus", "Send a letter about a platypus, by memo."),
]
VAULT = {
    "tools": [
        tool("unseal_zygote", "Unseal the zygote, or find a memo in the vault."),
        tool("purge_quokka", "Purge each quokka memo.", annotations={"readOnlyHint": True}),
        tool("file_memo", "File a memo of a zygote."),
    ],
    "prompts": [{"name": "zygote_review", "description": "Review the zygote.", "messages": []}],
    "resources": [{"uri": "zygote://today", "name": "today", "text": "hatched"}],
    "resource_templates": [{"uriTemplate": "quokka://{day}", "name": "quokka", "text": "of {day}"}],
}
DESK = {
    "prompts": [{"name": "summary", "description": "Sum up memos.", "messages": []}],
    "resources": [{"uri": "memo://today", "name": "today", "text": "nothing"}],
    "resource_templates": [{"uriTemplate": "memo://{day}", "name": "memo", "text": "of {day}"}],
}
ZYGOTE = "mcpzip://vault/zygote://today"
SECRETS = ("platypus", "zygote", "quokka", "vault", "unseal", "purge", "shred")
ACCESS = [
    {"groups": ["keepers"], "allow": "*"},
    {"allow": "desk"},
    {"groups": ["plain"], "deny": ["desk__*_platypus"]},
]
PLAIN = person("bob", "plain")


@pytest.fixture(params=["meta", "direct", "pinned", "split"])
async def both(
    request: pytest.FixtureRequest, fake_mcp: StartFake, tmp_path: Path
) -> AsyncIterator[tuple[Endpoint, Endpoint]]:
    """A proxy with everything, and one that has only what a plain person may use."""
    keys: Json = {
        "meta": {},
        "direct": {"expose": "direct"},
        "pinned": {},
        "split": {"expose": {"split": True}},
    }[request.param]
    pin = {"pin": ["*"]} if request.param == "pinned" else {}
    desk = fake_mcp(name="desk", tools=[*SHOWN, *HIDDEN], **DESK)
    vault = fake_mcp(name="vault", **VAULT)
    (tmp_path / "whole").mkdir()
    (tmp_path / "part").mkdir()
    others = {"desk": {**desk.config, **pin}, "vault": {**vault.config, **pin}}
    alone = {"desk": {**desk.config, **pin, "tools": {"deny": ["*_platypus"]}}}
    async with AsyncExitStack() as running:
        made: list[Endpoint] = []
        for name, servers, access in (("whole", others, ACCESS), ("part", alone, None)):
            config = {**keys, **({} if access is None else {"access": access})}
            proxy = await running.enter_async_context(
                proxy_of(tmp_path / name, others=servers, search={"learn": False}, **config)
            )
            await proxy.wait_for_rests(20)
            await proxy.wait_until_indexed()
            made.append(Endpoint(proxy))
        yield made[0], made[1]


WORDS = st.sampled_from(
    [
        *("memo", "letter", "send", "find", "archive", "file a memo", "mail", "shred", "platypus", "zygote"),
        *("quokka", "unseal", "vault", "desk", "server:vault", "server:desk", "-memo", "memmo", "zygot"),
        *("plattipus", "purge", "hatched", "proxy status", '"zygote"', "shread", "unsael the zigote"),
    ]
)
QUERIES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
NAMES = st.sampled_from(
    [
        *("desk__file_memo", "desk__find_memo", "desk__send_letter", "desk__shred_platypus", "file_memo"),
        *("desk__mail_platypus", "vault__unseal_zygote", "vault__purge_quokka", "vault__file_memo", "vault"),
        *("unseal_zygote", "vaultUnsealZygote", "vault.unseal_zygote", "vault__unseal_zygot", "vault__x"),
        *("desk__shred_platipus", "shred_platypus", "desk_file_memo", "deskFileMemo", "desk__x"),
        *("proxy-status", "proxy_status", "nothing", "r1-aaaaaaaaaaaaaaaa", "purge_quokka"),
        *("vaultproxystatus", "valut__file_memo"),
    ]
)  # fmt: skip
URIS = st.sampled_from(
    [
        *("mcpzip://desk/memo://today", "memo://today", "zygote://today", "mcpzip://vault/zygote://today"),
        *("quokka://monday", "memo://monday", "desk+memo://today", "vault+zygote://today", "zygote://toda"),
        *("mcpzip-result:r1-aaaaaaaaaaaaaaaa", "file:///etc/passwd"),
    ]
)
PROMPTS = st.sampled_from(
    [
        "desk__summary",
        "summary",
        "zygote_review",
        "vault__zygote_review",
        "desk__zygote",
        "vault__x",
        "sumary",
    ]
)
REFS = st.one_of(
    PROMPTS.map(lambda name: {"type": "ref/prompt", "name": name}),
    URIS.map(lambda uri: {"type": "ref/resource", "uri": uri}),
)


def calls(name: str, arguments: st.SearchStrategy[Json]) -> st.SearchStrategy[tuple[str, Json]]:
    return arguments.map(lambda told: ("tools/call", {"name": name, "arguments": told}))


SEARCHES = st.fixed_dictionaries(
    {"query": QUERIES},
    optional={
        "limit": st.integers(1, 50),
        "server": st.sampled_from(["desk", "vault", "valut", "v"]),
        "read_only": st.booleans(),
    },
)
REQUESTS = st.one_of(
    calls("search_tools", SEARCHES),
    calls("describe_tool", NAMES.map(lambda name: {"name": name})),
    calls("execute_tool", NAMES.map(lambda name: {"name": name, "arguments": {}})),
    calls("execute_tool", NAMES.map(lambda name: {"name": name, "arguments": {"x": 1}, "select": "a.b"})),
    calls("execute_read_tool", NAMES.map(lambda name: {"name": name, "arguments": {}})),
    NAMES.map(lambda name: ("tools/call", {"name": name, "arguments": {}})),
    st.sampled_from(
        [
            *(("tools/list", {}), ("prompts/list", {}), ("resources/list", {}), ("server/discover", {})),
            *(("resources/templates/list", {}), ("tools/list", {"cursor": "00"}), ("tools/call", {})),
            ("tools/call", own("proxy_status")),
            ("tools/call", use("proxy_status")),
        ]
    ),
    PROMPTS.map(lambda name: ("prompts/get", {"name": name})),
    URIS.map(lambda uri: ("resources/read", {"uri": uri})),
    REFS.map(lambda ref: ("completion/complete", {"ref": ref, "argument": {"name": "day", "value": "m"}})),
)


def told(reply: Json) -> str:
    """A reply, without ages, handles and the folder of its config."""
    text = json.dumps(reply, sort_keys=True)
    text = re.sub(r"/[^ \"]*/(whole|part)/", "/", text)
    return re.sub(r"\d+ (s|min) ago", "… ago", text)


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(REQUESTS)
async def test_the_reply_is_that_of_a_proxy_without_the_rest(
    both: tuple[Endpoint, Endpoint], request_: tuple[str, Json]
) -> None:
    whole, part = both
    method, params = request_
    reply = told(await ask(whole, PLAIN, method, params))
    assert reply == told(await ask(part, None, method, params))
    asked = json.dumps(params)
    assert [word for word in SECRETS if word in reply and word not in asked] == []


async def test_who_may_use_all_has_all(both: tuple[Endpoint, Endpoint]) -> None:
    whole, _ = both
    for who in (person("ann", "keepers"), None):
        described = await ask(whole, who, "tools/call", own("describe_tool", name="vault__unseal_zygote"))
        if "error" not in described:  # there is none in the mode "direct"
            assert "Unseal the zygote" in str(described)
            assert "unseal_zygote" in str(await ask(whole, who, "tools/call", use("vault__unseal_zygote")))
        assert "zygote_review" in str(await ask(whole, who, "prompts/list", {}))
        assert "zygote://today" in str(await ask(whole, who, "resources/list", {}))
        assert "hatched" in str(await ask(whole, who, "resources/read", {"uri": ZYGOTE}))


# --- rules that change, and rules that need a scope


@pytest.fixture
async def desk(fake_mcp: StartFake, tmp_path: Path) -> AsyncIterator[tuple[Proxy, FakeServer]]:
    fake = fake_mcp(name="desk", tools=[*SHOWN, *HIDDEN], **DESK)
    access = [{"allow": "desk", "risk": "reads"}, {"scopes": ["write"], "allow": "desk__send_*"}]
    async with proxy_of(tmp_path, fake, access=access) as proxy:
        await proxy.wait_for_rests(20)
        yield proxy, fake


async def test_a_tool_for_which_a_scope_is_missing(desk: tuple[Proxy, FakeServer]) -> None:
    proxy, fake = desk
    endpoint = Endpoint(proxy)
    reply = await ask(endpoint, BOB, "tools/call", use("desk__send_letter"))
    assert reply["error"]["scopes"] == ["write"]
    assert "letter" not in str(reply)
    reply = await ask(endpoint, BOB, "tools/call", own("describe_tool", name="desk__send_letter"))
    assert reply["error"]["scopes"] == ["write"]
    assert "send_letter" not in str(
        await ask(endpoint, BOB, "tools/call", own("search_tools", query="letter"))
    )
    assert fake.record.calls() == []
    able = person("bob", scopes=("write",))
    assert "error" not in await ask(endpoint, able, "tools/call", use("desk__send_letter"))
    assert len(fake.record.calls("send_letter")) == 1
    # No scope helps with this one, so that nothing is said of it.
    assert "error" not in await ask(endpoint, able, "tools/call", use("desk__file_memo"))
    assert fake.record.calls("file_memo") == []


async def test_an_edit_of_the_rules_counts_at_once(desk: tuple[Proxy, FakeServer]) -> None:
    proxy, fake = desk
    endpoint, heard = Endpoint(proxy), list[str]()
    session = Client(Era.LEGACY, principal=BOB, notify=lambda method, params: heard.append(method))
    proxy.add_client(session)
    await ask(endpoint, None, "resources/subscribe", {"uri": "memo://today"}, session)
    update = b'{"uri":"memo://today"}'
    proxy.notifier.resource_updated("desk", update)
    assert heard == ["notifications/resources/updated"]
    assert "find_memo" in str(await ask(endpoint, BOB, "tools/call", use("desk__find_memo")))
    text = json.dumps({"mcpServers": {"desk": fake.config}, "access": []}).encode()
    proxy.reconfigure(replace(parse(text, proxy.config.path, {}), search=proxy.config.search))
    assert "notifications/tools/list_changed" in heard
    heard.clear()
    proxy.notifier.resource_updated("desk", update)
    assert heard == []
    assert "There is no tool" in str(await ask(endpoint, BOB, "tools/call", use("desk__find_memo")))
    assert len(fake.record.calls("find_memo")) == 1
    await proxy.remove_client(session)


async def test_globs_of_tools_are_of_nothing_else(fake_mcp: StartFake, tmp_path: Path) -> None:
    fake = fake_mcp(name="desk", tools=[*SHOWN, *HIDDEN], **DESK)
    async with proxy_of(tmp_path, fake, access=[{"allow": "desk__*_memo"}], code=True) as proxy:
        await proxy.wait_for_rests(20)
        endpoint = Endpoint(proxy)
        assert "desk" in str(await ask(endpoint, BOB, "server/discover", {}))
        assert "find_memo" in str(await ask(endpoint, BOB, "tools/call", use("desk__find_memo")))
        for method, params in (
            ("prompts/list", {}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
        ):
            (listed,) = (each for each in (await ask(endpoint, BOB, method, params)).values() if each == [])
            assert listed == []
        for method, params in (
            ("prompts/get", {"name": "desk__summary"}),
            ("prompts/get", {"name": "summary"}),
            ("resources/read", {"uri": "memo://today"}),
            ("resources/read", {"uri": "mcpzip://desk/memo://today"}),
        ):
            reply = await ask(endpoint, BOB, method, params)
            assert reply["error"]["message"].startswith("There is no"), reply
        session = Client(Era.LEGACY, principal=BOB)
        reply = await ask(endpoint, None, "resources/subscribe", {"uri": "memo://today"}, session)
        assert reply["error"]["message"].startswith("There is no")
        for code in ("desk__send_letter()", 'call_tool("desk__send_letter")', "desk__shred_platypus()"):
            reply = await ask(endpoint, BOB, "tools/call", own("run_code", code=f"return {code}"))
            assert "no tool" in str(reply) or "not defined" in str(reply), reply
        assert "find_memo" in str(
            await ask(endpoint, BOB, "tools/call", own("run_code", code="return desk__find_memo()"))
        )
    assert {call["name"] for call in fake.record.calls()} == {"find_memo"}


async def test_only_what_may_be_read_is_told_of(fake_mcp: StartFake, tmp_path: Path) -> None:
    desk, vault = fake_mcp(name="desk", tools=SHOWN, **DESK), fake_mcp(name="vault", **VAULT)
    async with proxy_of(tmp_path, desk, vault, access=[{"allow": "desk"}]) as proxy:
        await proxy.wait_for_rests(20)
        endpoint, heard = Endpoint(proxy), list[tuple[str, bytes | None]]()
        wanted = ["mcpzip://desk/memo://today", ZYGOTE, "zygote://today"]
        params = {"_meta": FORM, "notifications": {"resourceSubscriptions": wanted}}
        client = Client(Era.MODERN, has_session=False, principal=BOB)
        exchange = Exchange(
            client, b"1", json.dumps(params).encode(), lambda method, told: heard.append((method, told))
        )
        work = endpoint.begin("subscriptions/listen", exchange)
        assert not isinstance(work, bytes)
        listening = asyncio.ensure_future(work)
        await comes_true(lambda: heard)
        assert wanted[0] in str(heard[0])
        heard.clear()
        proxy.notifier.resource_updated("vault", b'{"uri":"zygote://today"}')
        assert heard == []  # to this person these URIs are of the only server that there is
        proxy.notifier.resource_updated("desk", b'{"uri":"memo://today"}')
        assert [method for method, _ in heard] == ["notifications/resources/updated"]
        listening.cancel()
        await asyncio.wait({listening})
