"""The fake authorization server before an independent judge: the SDK's OAuth client, in both eras."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from helpers.oauth_client import CALLBACK, Memory, provider, signed_in
from mcp import Client
from mcp.client.auth import OAuthFlowError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client
from mcpzip_fakes.faults import fault
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.server import FakeAuth
from mcpzip_fakes.pytest_plugin import fake_auth as fake_auth

Start = Callable[..., FakeServer]
MODERN = "2026-07-28"
MODES = ("legacy", MODERN)
DOCUMENT_URL = "https://client.example/mcp.json"
DOCUMENT = {
    "client_id": DOCUMENT_URL,
    "client_name": "third party",
    "redirect_uris": [CALLBACK],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
}


def start(fake_mcp: Start, **oauth: object) -> FakeServer:
    return fake_mcp(tools=["echo", "pay"], transport="http", oauth=oauth)


async def echoes(client: Client, tool: str = "echo") -> bool:
    result: Any = await client.call_tool(tool, {"n": 1})
    return bool(result.content[0].text == '{"n":1}')


def endpoints(server: FakeServer) -> list[str]:
    """The endpoints that were asked, without the metadata."""
    assert server.auth
    return [seen.endpoint for seen in server.auth.requests() if seen.endpoint not in ("metadata", "resource")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("transport", "flags"), [("http", {}), ("http", {"json_response": True}), ("sse", {})]
)
async def test_a_client_registers_and_signs_in(
    fake_mcp: Start, transport: str, flags: dict[str, bool], mode: str
) -> None:
    server = fake_mcp(tools=["echo"], transport=transport, oauth={}, **flags)
    async with signed_in(server, mode) as client:
        assert await echoes(client)
        assert await echoes(client)
    assert endpoints(server) == ["register", "authorize", "token"]
    bearers = server.record.events("bearer")
    assert (bearers[0].detail["token"], bearers[0].detail["refused"]) == ("", "there is none")
    assert {line.detail["token"] for line in bearers[1:]} == {"access-1"}
    assert server.auth
    [token] = server.auth.tokens("access")
    assert token.resource == server.url
    assert {line.detail["raw"] for line in bearers[1:]} == {f"Bearer {token.value}"}


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_with_a_document_needs_no_registration(fake_mcp: Start, mode: str) -> None:
    server = start(fake_mcp, cimd=True, registration=False, documents={DOCUMENT_URL: DOCUMENT})
    async with signed_in(server, mode, client_metadata_url=DOCUMENT_URL) as client:
        assert await echoes(client)
    assert endpoints(server) == ["authorize", "token"]
    assert server.auth
    assert {token.client for token in server.auth.tokens()} == {DOCUMENT_URL}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "told",
    [
        {"issuer_path": "/tenant"},
        {"discovery": "oidc"},
        {"discovery": "oidc", "issuer_path": "/tenant"},
        {"discovery": "oidc-inserted", "issuer_path": "/tenant"},
        {"own_port": True},
        {"own_port": True, "issuer_path": "/tenant", "discovery": "oidc"},
        {"resource_metadata": "root"},
        {"challenge": "bare"},
        {"challenge": "none", "resource_metadata": "root"},
        {"discovery": "none", "resource_metadata": "none", "challenge": "none", "resource": "optional"},
        {"iss": "missing", "announce_iss": False},
        {"registration_method": "client_secret_basic"},
        {"registration_method": "client_secret_post"},
        {"approve": "page"},
        {"tell_expiry": False, "refresh": "none"},
        {"scopes": ["read"], "required_scopes": ["read"], "challenge_scope": True, "offline": True},
    ],
    ids=lambda told: "-".join(f"{key}={value}" for key, value in told.items()),
)
async def test_every_careful_variant_works(fake_mcp: Start, told: dict[str, object], mode: str) -> None:
    server = start(fake_mcp, **told)
    async with signed_in(server, mode) as client:
        assert await echoes(client)
    assert server.auth
    assert all(seen.status for seen in server.auth.requests())


async def test_a_token_that_ran_out_is_refreshed(fake_mcp: Start) -> None:
    server = start(fake_mcp, access_seconds=60)
    assert server.auth
    own = provider(server.url, server.auth, Memory())
    async with httpx2.AsyncClient(auth=own, timeout=20) as http:
        statuses = [(await http.post(server.url, json={})).status_code]
        server.auth.advance(61)
        own.context.token_expiry_time = 1  # its clock goes forward too
        statuses.append((await http.post(server.url, json={})).status_code)
    assert 401 not in statuses
    assert len(server.auth.refreshes()) == len(server.auth.requests("authorize")) == 1
    assert [token.ended for token in server.auth.tokens("refresh")] == ["rotated", ""]


async def test_a_call_that_needs_more_steps_up(fake_mcp: Start) -> None:
    server = start(
        fake_mcp, scopes=["read", "write"], required_scopes=["read"], tool_scopes={"pay": ["write"]}
    )
    async with signed_in(server, MODERN) as client:
        assert await echoes(client)
        assert await echoes(client, "pay")
        assert await echoes(client)
    assert endpoints(server) == ["register", "authorize", "token", "authorize", "token"]
    assert server.auth
    assert [token.scope for token in server.auth.tokens("access")] == [("read",), ("read", "write")]
    refused = [str(line.detail["refused"]) for line in server.record.events("bearer")]
    assert [why for why in refused if why] == ["there is none", "it lacks read write"]


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_machine_with_a_secret(fake_mcp: Start, method: Any) -> None:
    bot = {"id": "bot", "secret": "s e:c%", "grants": ["client_credentials"]}
    server = start(fake_mcp, clients=[bot], registration=False)
    assert server.auth
    own = ClientCredentialsOAuthProvider(
        server.url, Memory(), "bot", "s e:c%", method, issuer=server.auth.issuer
    )
    assert await called_as(own, server)


async def test_a_machine_that_signs(fake_mcp: Start) -> None:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    server = start(fake_mcp, clients=[{"id": "bot", "key": public, "grants": ["client_credentials"]}])
    assert server.auth
    signs = SignedJWTParameters(issuer="bot", subject="bot", signing_key=private)
    assertion = signs.create_assertion_provider()
    own = PrivateKeyJWTOAuthProvider(server.url, Memory(), "bot", assertion, issuer=server.auth.issuer)
    assert await called_as(own, server)


async def called_as(own: httpx2.Auth, server: FakeServer) -> bool:
    async with (
        httpx2.AsyncClient(auth=own, timeout=20) as http,
        Client(streamable_http_client(server.url, http_client=http), mode=MODERN, cache=None) as client,
    ):
        return await echoes(client)


async def flow(server: FakeServer, **options: Any) -> int:
    """The SDK's flow on a bare request; the status that comes out."""
    assert server.auth
    own = provider(server.url, server.auth, Memory(), **options)
    async with httpx2.AsyncClient(auth=own, timeout=20) as http:
        return (await http.post(server.url, json={})).status_code


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"lies": ["issuer"]}, "issuer mismatch"),
        ({"lies": ["resource"]}, "does not match expected"),
        ({"lies": ["foreign-server"]}, "issuer mismatch"),
        ({"state": "wrong"}, "State parameter mismatch"),
        ({"state": "missing"}, "State parameter mismatch"),
        ({"iss": "wrong"}, "iss mismatch"),
        ({"iss": "missing"}, "missing iss"),
        ({"approve": "deny"}, "No authorization code"),
        ({"faults": [{"kind": "status", "endpoint": "resource"}]}, "metadata request failed"),
    ],
)
async def test_a_careful_client_refuses_what_is_not_right(
    fake_mcp: Start, told: dict[str, object], sentence: str
) -> None:
    server = start(fake_mcp, **told)
    with pytest.raises(OAuthFlowError, match=sentence):
        await flow(server)
    assert "token" not in endpoints(server)
    assert server.auth
    assert server.auth.tokens() == []


@pytest.mark.parametrize("kind", ["status", "error", "shape", "garbage", "cut", "redirect"])
async def test_a_token_endpoint_that_fails(fake_mcp: Start, kind: str) -> None:
    server = start(fake_mcp, faults=[kind])
    with pytest.raises((OAuthTokenError, httpx2.RemoteProtocolError)):
        await flow(server)
    assert server.auth
    [seen] = server.auth.requests("token")
    assert seen.host.startswith("127.0.0.1:")


async def test_another_issuer_in_the_middle(fake_mcp: Start, fake_auth: Callable[..., FakeAuth]) -> None:
    first, second = fake_auth(), fake_auth(issuer_path="/two")
    server = fake_mcp(tools=["echo"], transport="http", auth=first)
    memory = Memory()
    async with signed_in(server, MODERN, memory) as client:
        assert await echoes(client)
        server.trust(second)
        with suppress(Exception):  # the SDK's client would press the first issuer's buttons
            await echoes(client)
    async with signed_in(server, MODERN, memory) as client:
        assert await echoes(client)
    assert len(first.requests("token")) == 1
    assert {token.ended for token in first.tokens()} == {""}
    assert second.tokens("access")
    leaked = [seen for seen in second.requests() for token in first.tokens() if token.value in str(seen)]
    assert leaked == []


async def test_two_servers_share_an_issuer_and_no_tokens(
    fake_mcp: Start, fake_auth: Callable[..., FakeAuth]
) -> None:
    auth = fake_auth()
    shop = fake_mcp(name="shop", tools=["echo"], transport="http", auth=auth)
    bank = fake_mcp(name="bank", tools=["echo"], transport="http", auth=auth)
    memory = Memory()
    async with signed_in(shop, MODERN, memory) as client:
        assert await echoes(client)
    assert memory.tokens
    bearer = {"authorization": f"Bearer {memory.tokens.access_token}"}
    async with httpx2.AsyncClient(timeout=20) as http:
        answer = await http.post(bank.url, json={}, headers=bearer)
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    [seen] = bank.record.events("bearer")
    assert (seen.detail["token"], seen.detail["refused"]) == ("access-1", "it is for another resource")


async def test_a_server_that_wants_the_token_of_another(
    fake_mcp: Start, fake_auth: Callable[..., FakeAuth]
) -> None:
    auth = fake_auth()
    bank = fake_mcp(name="bank", tools=["echo"], transport="http", auth=auth)
    wants = {"resource_fields": {"resource": bank.url}}
    shop = fake_mcp(name="shop", tools=["echo"], transport="http", auth=auth, oauth=wants)
    with pytest.raises(OAuthFlowError, match=f"{bank.url} does not match"):
        await flow(shop)
    assert auth.tokens() == []


async def test_the_shipped_one_as_a_process(fake_mcp: Start) -> None:
    server = fake_mcp("protected", transport="http", faults=[fault("crash", tool="echo")])
    assert server.auth
    async with signed_in(server, MODERN) as client:
        await client.call_tool("balance", {})  # the SDK steps up only once it is signed in
        result: Any = await client.call_tool("refund", {"receipt": "7"})
        assert result.content[0].text == "Receipt 7 was paid back (1)."
    tokens = await asyncio.to_thread(server.auth.tokens, "access")
    assert [token.scope for token in tokens] == [("till:read",), ("till:read", "till:write")]
