"""What an authorization server replies, whatever that is."""

import json
from collections.abc import Callable
from typing import TypeVar

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.auth.client import Client, read_client
from mcpzip.auth.discovery import is_shown_tokens
from mcpzip.auth.errors import describe
from mcpzip.auth.responses import LONGEST, Token, oauth_error, read_registration, read_token
from mcpzip.auth.scopes import well_formed
from mcpzip.model.errors import LoginError
from mcpzip.system.network import is_confidential, is_loopback

ASKED = httpx.Request("POST", "https://as.example/token")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MEMBERS = (
    *("access_token", "refresh_token", "token_type", "expires_in", "scope", "error", "error_description"),
    *("client_id", "client_secret", "redirect_uris", "token_endpoint_auth_method"),
)
BODIES = st.binary(max_size=50) | st.dictionaries(
    st.sampled_from(MEMBERS), JSON | st.sampled_from(["Bearer", "abc", "3600"]), max_size=6
).map(lambda body: json.dumps(body).encode())


def reply(body: bytes, status: int = 200) -> httpx.Response:
    return httpx.Response(status, content=body, request=ASKED)


Read = TypeVar("Read", Token, Client)


def judged(read: Callable[[httpx.Response], Read], response: httpx.Response) -> Read | str:
    """What is read, or the sentence of why nothing is."""
    try:
        return read(response)
    except LoginError as error:
        return str(error)


@given(BODIES, st.sampled_from([200, 201, 307, 400, 401, 500]))
def test_a_reply_is_of_use_or_a_sentence(body: bytes, status: int) -> None:
    code, description = oauth_error(reply(body, status))
    assert (code + description).isprintable()
    token = judged(read_token, reply(body, status))
    if isinstance(token, str):
        assert token.isprintable()
    else:
        httpx.Headers({"Authorization": f"Bearer {token.access_token}"})
        assert token.access_token.isascii()
        assert token.access_token.isprintable()
        assert token.refresh_token.isascii()
        assert token.expires_in is None or 1 <= token.expires_in <= LONGEST
        assert well_formed(token.scope or "") == (token.scope or "")
    client = judged(read_registration, reply(body, status))
    if isinstance(client, str):
        assert client.isprintable()
    else:
        assert client.client_id.isascii()
        assert client.client_secret.isascii()
        assert read_client(client.as_dict()) == client


@given(st.text(st.characters()))
def test_scopes_break_neither_a_header_nor_a_terminal(text: str) -> None:
    scope = well_formed(text)
    assert scope.isascii()
    assert scope.isprintable()
    assert not {*scope} & {*'"\\'}
    assert well_formed(scope) == scope


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:1/x", True),
        ("http://app.localhost/", True),
        ("http://127.0.0.1/", True),
        ("http://127.8.9.10/", True),
        ("http://[::1]:5/", True),
        ("http://[::ffff:127.0.0.1]/", True),
        ("http://0.0.0.0/", True),
        ("http://127.evil.example/", False),
        ("http://localhost.evil.example/", False),
        ("http://localhost@evil.example/", False),
        ("http://evil.example/localhost", False),
        ("http://169.254.169.254/", False),
        ("http:///", False),
    ],
)
def test_what_is_on_this_machine(url: str, here: bool) -> None:
    assert is_loopback(url) == here
    assert is_confidential(url) == here
    assert is_confidential(url.replace("http:", "https:"))


@pytest.mark.parametrize(
    ("url", "server", "may"),
    [
        ("https://shop.example/mcp", "https://shop.example/mcp", True),
        ("https://SHOP.example:443/other", "https://shop.example/mcp", True),
        ("https://user:word@shop.example/mcp", "https://shop.example/mcp", True),
        ("https://shop.example:444/mcp", "https://shop.example/mcp", False),
        ("http://shop.example/mcp", "https://shop.example/mcp", False),
        ("http://shop.example/mcp", "http://shop.example/mcp", False),
        ("https://shop.example/mcp", "http://shop.example/mcp", True),
        ("https://shop.example@evil.example/mcp", "https://shop.example/mcp", False),
        ("http://127.0.0.1:5/mcp", "http://127.0.0.1:5/mcp", True),
        ("http://127.0.0.1:6/mcp", "http://127.0.0.1:5/mcp", False),
    ],
)
def test_where_a_token_may_go(url: str, server: str, may: bool) -> None:
    assert is_shown_tokens(url, server) == may


@given(st.text(st.characters()))
def test_any_error_is_one_line(text: str) -> None:
    for error in (
        ValueError(text),
        httpx.ConnectError(text),
        httpx.InvalidURL(text),
    ):
        assert describe(error).isprintable()
