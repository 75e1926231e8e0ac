"""`mcpzip serve --http` for a team, as it is installed: the SDK's OAuth client signs in to it, and people
with API keys call tools.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from helpers.driver import run_here, write_config
from helpers.oauth_client import Memory, provider
from helpers.serve_http import listening, mcpzip_command
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcpzip_conformance.http_subject import free_port
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.server import FakeAuth

Start = Callable[..., FakeServer]
StartAuth = Callable[..., FakeAuth]


@pytest.fixture
def mcpzip(tmp_path: Path) -> str:
    return mcpzip_command(tmp_path)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_signs_in_finds_its_tools_and_asks_for_more_scopes(
    fake_mcp: Start, fake_auth: StartAuth, tmp_path: Path, mcpzip: str, mode: str
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    auth = fake_auth(
        access_tokens="jwt",
        algorithm="ES256",
        resources=[url],
        scopes=["mcp", "write"],
        required_scopes=["mcp"],
        claims={"sub": "u1", "preferred_username": "ann", "groups": ["shoppers"]},
    )
    shop = fake_mcp(name="shop", tools=["pay", "look"], transport="http")
    bank = fake_mcp(name="bank", tools=["transfer"])
    config = write_config(
        tmp_path,
        shop,
        bank,
        audit=True,
        http={"public_url": url, "issuers": [{"issuer": auth.issuer, "scopes": ["mcp"]}]},
        access=[
            {"groups": ["shoppers"], "allow": "shop__look"},
            {"groups": ["shoppers"], "scopes": ["write"], "allow": "shop"},
            {"groups": ["bankers"], "allow": "bank"},
        ],
    )
    with listening(mcpzip, config, port=port) as served:
        assert served == url
        own = provider(url, auth, Memory())
        async with (
            httpx2.AsyncClient(auth=own, timeout=20) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode, cache=None) as client,
        ):
            found = await call(client, "search_tools", query="look or transfer")
            assert "shop__look" in found
            assert "bank" not in found
            assert "bank" not in (client.instructions or "")
            await call(client, "execute_tool", name="shop__look", arguments={})
            assert "There is no tool" in await call(
                client, "execute_tool", name="bank__transfer", arguments={}
            )
            # Its token has no scope for this: the SDK signs in again, and makes the call again.
            await call(client, "execute_tool", name="shop__pay", arguments={"id": 7})
    assert bank.record.calls() == []
    assert [called["name"] for called in shop.record.calls()] == ["look", "pay"]
    tokens = [token.value for token in auth.tokens()]
    assert {scope for token in auth.tokens("access") for scope in token.scope} == {"mcp", "write"}
    sent = json.dumps([line.detail for line in shop.record.events("http")])
    assert "authorization" not in sent.lower()
    assert not any(token in sent for token in tokens)
    log = (tmp_path / "audit" / "config.json.audit.jsonl").read_text("utf-8")
    assert {json.loads(line)["principal"]["name"] for line in log.splitlines()} == {"ann"}
    said = config.with_suffix(".serve.log").read_text("utf-8")
    assert not any(token in said + log for token in tokens)


async def call(client: Client, tool: str, **arguments: Any) -> str:
    result: Any = await client.call_tool(tool, arguments)
    return "\n".join(part.text for part in result.content)


def test_people_with_api_keys(fake_mcp: Start, tmp_path: Path, mcpzip: str) -> None:
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    access = [{"groups": ["shoppers"], "allow": "shop"}, {"groups": ["bankers"], "allow": "bank"}]
    config = write_config(tmp_path, shop, bank, http={"api_keys": "keys.json"}, access=access)
    keys = {
        name: run_here("keys", "add", name, "--group", group, "--config", str(config)).stdout.decode().strip()
        for name, group in (("ann", "shoppers"), ("bob", "bankers"))
    }
    with listening(mcpzip, config) as url:
        assert asked(url, None, "shop__pay").status_code == 401
        assert "There is no tool" not in asked(url, keys["ann"], "shop__pay").text
        assert "There is no tool" in asked(url, keys["bob"], "shop__pay").text
        assert "There is no tool" not in asked(url, keys["bob"], "bank__transfer").text
    assert len(shop.record.calls()) == len(bank.record.calls()) == 1


def asked(url: str, key: str | None, tool: str) -> httpx.Response:
    meta = "io.modelcontextprotocol/"
    form = {f"{meta}protocolVersion": "2026-07-28", f"{meta}clientCapabilities": {}}
    params = {"name": "execute_tool", "arguments": {"name": tool, "arguments": {}}, "_meta": form}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "execute_tool",
        **({} if key is None else {"authorization": f"Bearer {key}"}),
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx.post(url, json=message, headers=headers, timeout=20)


@pytest.mark.parametrize(
    ("keys", "words", "said"),
    [
        ({"http": {"api_keys": "keys.json"}}, ("--token-file", "token"), "people sign in by the http"),
        ({"http": {"issuers": ["https://i.example"]}}, (), "there is no public_url"),
        ({"http": {"api_kyes": "keys.json"}}, (), "http.api_kyes: there is no such key"),
    ],
)
def test_mistakes_are_said_before_anything_starts(
    tmp_path: Path, keys: dict[str, Any], words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "token").write_text("x" * 40, "utf-8")
    config = write_config(tmp_path, **keys)
    words = tuple(str(tmp_path / word) if word == "token" else word for word in words)
    done = run_here("serve", "--http", "127.0.0.1:0", *words, "--config", str(config))
    assert done.returncode == 2
    assert said in done.stderr.decode()


def test_tokens_without_the_extra_are_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    monkeypatch.delitem(sys.modules, "mcpzip.identity.jwt_verifier", raising=False)
    http = {"public_url": "https://mcp.example/mcp", "issuers": ["https://i.example"]}
    done = run_here("serve", "--http", "127.0.0.1:0", "--config", str(write_config(tmp_path, http=http)))
    assert done.returncode == 2
    assert 'pip install "mcpzip[team]"' in done.stderr.decode()
