"""What an authorization server replies, whatever that is."""

import json
from collections.abc import Callable

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from mcpzip.auth.discovery import is_shown_tokens
from mcpzip.auth.failures import plainly
from mcpzip.auth.replies import LONGEST, oauth_error, registration_reply, token_reply
from mcpzip.auth.scopes import well_formed
from mcpzip.model.errors import LoginError
from mcpzip.system.network import is_confidential, is_loopback

ASKED = httpx2.Request("POST", "https://as.example/token")
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


def reply(body: bytes, status: int = 200) -> httpx2.Response:
    return httpx2.Response(status, content=body, request=ASKED)


def judged(
    judge: Callable[[httpx2.Response], httpx2.Response], response: httpx2.Response
) -> httpx2.Response | str:
    """The reply as it is taken, or the sentence of why it isn't."""
    try:
        return judge(response)
    except LoginError as error:
        return str(error)


@given(BODIES, st.sampled_from([200, 201, 307, 400, 401, 500]))
def test_a_reply_is_of_use_or_a_sentence(body: bytes, status: int) -> None:
    code, description = oauth_error(reply(body, status))
    assert (code + description).isprintable()
    granted = judged(token_reply, reply(body, status))
    if isinstance(granted, str):
        assert granted.isprintable()
    else:
        token = OAuthToken.model_validate_json(granted.content)
        httpx2.Headers({"Authorization": f"Bearer {token.access_token}"})
        assert token.access_token.isascii()
        assert token.access_token.isprintable()
        assert token.expires_in is None or 1 <= token.expires_in <= LONGEST
        assert well_formed(token.scope or "") == (token.scope or "")
    registered = judged(registration_reply, reply(body, status))
    if isinstance(registered, str):
        assert registered.isprintable()
    else:
        OAuthClientInformationFull.model_validate_json(registered.content)


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
        httpx2.InvalidURL(text),
    ):
        assert plainly(error).isprintable()
