"""The fake authorization server as unit tests talk to it: without HTTP."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from mcpzip_fakes.oauth.authority import Asked, Authority, s256
from mcpzip_fakes.oauth.errors import Refused
from mcpzip_fakes.oauth.settings import settings

ORIGIN = "http://127.0.0.1:8931"
MCP = f"{ORIGIN}/mcp"
CALLBACK = "http://127.0.0.1:7777/callback"
VERIFIER = "v" * 43


def authority(**told: object) -> Authority:
    made = Authority(settings(told))
    made.origin = ORIGIN
    made.resources = [MCP, ORIGIN]
    return made


def registered(server: Authority, **asked: object) -> str:
    metadata = {"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"}
    return str(server.clients.register({**metadata, **asked})["client_id"])


def request(client: str, **changed: str | None) -> dict[str, str]:
    fields: dict[str, str | None] = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": CALLBACK,
        "state": "s",
        "code_challenge": s256(VERIFIER),
        "code_challenge_method": "S256",
        "resource": MCP,
        **changed,
    }
    return {key: value for key, value in fields.items() if value is not None}


def back(url: str) -> dict[str, str]:
    assert url.startswith(CALLBACK)
    return dict(parse_qsl(urlsplit(url).query))


def code(server: Authority, client: str, **changed: str | None) -> str:
    asked = server.ask(request(client, **changed))
    assert isinstance(asked, Asked), asked
    return back(server.allow(asked))["code"]


def exchange(client: str, value: str, **changed: str) -> dict[str, str]:
    return {
        "grant_type": "authorization_code",
        "code": value,
        "client_id": client,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "resource": MCP,
        **changed,
    }


def signed_in(server: Authority, **changed: str | None) -> tuple[str, Mapping[str, Any]]:
    client = registered(server)
    return client, server.token(exchange(client, code(server, client, **changed)), "")


def refresh(client: str, token: object, **changed: str) -> dict[str, str]:
    return {"grant_type": "refresh_token", "refresh_token": str(token), "client_id": client, **changed}


def refused(server: Authority, form: Mapping[str, str], authorization: str = "") -> str:
    with pytest.raises(Refused) as error:
        server.token(form, authorization)
    return error.value.code


def good(server: Authority, token: object) -> bool:
    return server.judge(str(token), (MCP,))[1] == ""
