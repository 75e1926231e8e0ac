"""A protected fake over HTTP: where it sends those without a token, whom it lets in, and its lies."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.oauth_client import called, controls, origin
from mcpzip_fakes.launch import FakeServer, importable
from mcpzip_fakes.oauth.faults import KINDS
from mcpzip_fakes.oauth.lies import LIES
from mcpzip_fakes.oauth.settings import KnownClient, OAuth

Start = Callable[..., FakeServer]


def start(fake_mcp: Start, **oauth: object) -> FakeServer:
    return fake_mcp(tools=["echo", "pay"], transport="http", oauth=oauth)


def get(url: str) -> Any:
    """The JSON at ``url``, or the status if it isn't 200."""
    answer = httpx.get(url)
    return answer.json() if answer.status_code == 200 else answer.status_code


OF_SERVER = "/.well-known/oauth-authorization-server"
OF_RESOURCE = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("told", "server_at", "resource_at"),
    [
        ({}, OF_SERVER, f"{OF_RESOURCE}/mcp"),
        ({"issuer_path": "/t"}, f"{OF_SERVER}/t", f"{OF_RESOURCE}/mcp"),
        (
            {"issuer_path": "/t", "discovery": "oidc"},
            "/t/.well-known/openid-configuration",
            f"{OF_RESOURCE}/mcp",
        ),
        (
            {"issuer_path": "/t", "discovery": "oidc-inserted"},
            "/.well-known/openid-configuration/t",
            f"{OF_RESOURCE}/mcp",
        ),
        ({"resource_metadata": "root"}, OF_SERVER, OF_RESOURCE),
        ({"own_port": True}, "", f"{OF_RESOURCE}/mcp"),
        ({"discovery": "none", "resource_metadata": "none"}, "", ""),
    ],
)
def test_where_metadata_are_and_where_they_are_not(
    fake_mcp: Start, told: dict[str, Any], server_at: str, resource_at: str
) -> None:
    server = start(fake_mcp, **told)
    auth = controls(server)
    for name in ("oauth-authorization-server", "openid-configuration", "oauth-protected-resource"):
        for before in ("", "/t"):
            for after in ("", "/t", "/mcp"):
                place = f"{before}/.well-known/{name}{after}"
                found = get(origin(server) + place)
                if place == server_at:
                    assert found["issuer"] == auth.issuer
                    assert found["token_endpoint"] == f"{auth.issuer}/token"
                elif place == resource_at:
                    root = resource_at == OF_RESOURCE
                    assert found["resource"] == (origin(server) if root else server.url)
                    assert found["authorization_servers"] == [auth.issuer]
                else:
                    assert found in (401, 404), place
    if told.get("own_port"):
        assert get(auth.issuer + OF_SERVER)["issuer"] == auth.issuer


@pytest.mark.parametrize(
    ("told", "challenge"),
    [
        ({}, 'Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp"'),
        ({"challenge": "bare"}, "Bearer"),
        ({"challenge": "none"}, None),
        ({"resource_metadata": "none"}, "Bearer"),
        (
            {"required_scopes": ["a", "b"], "challenge_scope": True, "challenge": "bare"},
            'Bearer scope="a b"',
        ),
    ],
)
def test_who_comes_without_a_token_is_told_where_to_go(
    fake_mcp: Start, told: dict[str, Any], challenge: str | None
) -> None:
    server = start(fake_mcp, **told)
    for answer in (called(server), httpx.get(server.url), httpx.delete(server.url)):
        assert answer.status_code == 401
        wanted = challenge and challenge.replace("{origin}", origin(server))
        assert answer.headers.get("www-authenticate") == wanted


def test_good_tokens_and_others(fake_mcp: Start) -> None:
    server = start(fake_mcp, scopes=["read"], tool_scopes={"pay": ["write"]}, access_seconds=60)
    auth = controls(server)
    minted = auth.mint(scope="read write", resource=server.url)
    token = str(minted["access_token"])
    assert called(server, token, "pay").status_code == 200
    lacking = called(server, str(auth.mint(scope="read")["access_token"]), "pay")
    assert lacking.status_code == 403
    assert 'error="insufficient_scope"' in lacking.headers["www-authenticate"]
    assert 'scope="write"' in lacking.headers["www-authenticate"]
    for wrong in ("nonsense", str(minted["refresh_token"])):
        refused = called(server, wrong)
        assert refused.status_code == 401
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    auth.advance(61)
    assert called(server, token).status_code == 401
    told = [(line.detail["token"], line.detail["refused"]) for line in server.record.events("bearer")]
    assert told == [
        ("access-1", ""),
        ("access-2", "it lacks write"),
        ("", "it is no access token of this issuer"),
        ("refresh-1", "it is no access token of this issuer"),
        ("access-1", "expired"),
    ]
    assert server.record.events("bearer")[0].detail["raw"] == f"Bearer {token}"


def test_methods_that_need_no_token(fake_mcp: Start) -> None:
    server = start(fake_mcp, open_methods=["initialize"])
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    assert (
        httpx.post(
            server.url, json=hello, headers={"accept": "application/json, text/event-stream"}
        ).status_code
        == 200
    )
    assert called(server).status_code == 401


@pytest.mark.parametrize("lie", LIES)
def test_every_lie_is_told(fake_mcp: Start, lie: str) -> None:
    server = start(fake_mcp)
    before, after = _said(server), None
    controls(server).configure(lies=[lie])
    after = _said(server)
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert (
        changed
        == {
            "issuer": {"issuer"},
            "foreign-endpoints": {
                "authorization_endpoint",
                "token_endpoint",
                "registration_endpoint",
                "revocation_endpoint",
            },
            "foreign-token": {"token_endpoint"},
            "http-token": {"token_endpoint"},
            "plain-pkce": {"code_challenge_methods_supported"},
            "no-pkce": {"code_challenge_methods_supported"},
            "resource": {"resource"},
            "foreign-server": {"authorization_servers"},
            "foreign-metadata": {"challenge"},
        }[lie]
    )


def _said(server: FakeServer) -> dict[str, object]:
    """Everything that it says of itself."""
    well_known = f"{origin(server)}/.well-known"
    return {
        **get(f"{well_known}/oauth-authorization-server"),
        **get(f"{well_known}/oauth-protected-resource/mcp"),
        "challenge": called(server).headers["www-authenticate"],
    }


def test_what_it_says_may_be_laid_over(fake_mcp: Start) -> None:
    server = start(
        fake_mcp,
        metadata={"issuer": "https://other.example", "registration_endpoint": ""},
        resource_fields={"resource_documentation": "https://docs.example"},
        listed=["https://first.example", "{issuer}"],
        revocation=False,
    )
    said = _said(server)
    assert said["issuer"] == "https://other.example"
    assert "registration_endpoint" not in said
    assert "revocation_endpoint" not in said
    assert said["resource_documentation"] == "https://docs.example"
    assert said["authorization_servers"] == ["https://first.example", controls(server).issuer]
    assert httpx.post(f"{controls(server).issuer}/revoke", data={"token": "x"}).status_code == 404


def guide() -> str:
    """The section of the guide."""
    whole = (Path(__file__).parents[3] / "docs" / "fakes.md").read_text(encoding="utf-8")
    return whole.partition("\n## Signing in\n")[2].partition("\n## ")[0]


def test_the_guide_names_everything() -> None:
    named = [*OAuth.__struct_fields__, *LIES, *KINDS, *KnownClient.__struct_fields__]
    assert [name for name in named if f"`{name}`" not in guide()] == []


def test_the_examples_of_the_guide_run_for_a_stranger(tmp_path: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", guide(), re.DOTALL | re.MULTILINE)
    (tmp_path / "test_mine.py").write_text("\n\n".join(examples), encoding="utf-8")
    plugins = ["-p", "mcpzip_fakes.pytest_plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **importable(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert "2 passed" in done.stdout, done.stdout
