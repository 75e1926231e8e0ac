"""mcpzip as a resource server whose issuer is a fake, and what its refusals say."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.raw_http_client import Reply, Web, modern_message
from mcpzip_fakes.oauth.server import FakeAuth

from mcpzip.auth.challenge import _PARAMETER
from mcpzip.config import Config
from mcpzip.config.reading import parse
from mcpzip.proxy.exchange import Exchange
from mcpzip.server.http.people import People

URL = "https://mcp.example.org/team/mcp"
DOCUMENT = "/.well-known/oauth-protected-resource"
CALL, CALL_HEADERS = modern_message("tools/call", {"name": "who"})

StartAuth = Callable[..., FakeAuth]


async def who(exchange: Exchange) -> bytes:
    assert exchange.principal is not None
    found = exchange.principal
    return json.dumps(
        {"who": [found.subject, found.name], "groups": sorted(found.groups), "scopes": sorted(found.scopes)}
    ).encode()


def config(http: dict[str, object], folder: Path = Path("/c"), **env: str) -> Config:
    return parse(json.dumps({"mcpServers": {}, "http": http}).encode(), str(folder / "config.json"), env)


def people(auth: FakeAuth, warned: list[str] | None = None, **settings: object) -> People:
    http = {"public_url": URL, "issuers": [{"issuer": auth.issuer, **settings}]}
    return People(config(http, SECRET="the-secret-of-mcpzip"), [].append if warned is None else warned.append)


async def call(web: Web, token: str | None) -> Reply:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return await web.ask("POST", CALL, **{**CALL_HEADERS, **headers})


def challenge(reply: Reply) -> dict[str, str]:
    """The parameters of the challenge of a refusal that is JSON-RPC's."""
    assert reply.headers["content-type"] == "application/json", reply
    assert reply.last["error"]["message"]
    found = reply.headers["www-authenticate"]
    assert found.startswith("Bearer ")
    return {name: quoted or plain for name, quoted, plain in _PARAMETER.findall(found)}


@pytest.fixture
def auth(fake_auth: StartAuth) -> FakeAuth:
    return fake_auth(access_tokens="jwt")
