"""Answers that no authorization server should give, from one that gives them: each ends in a sentence.

The rule: whatever comes back from a stranger, nobody sees a traceback, a secret, or a sign that a terminal
would obey; and what can't be used as it is, is not kept.
"""

import gzip
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from helpers.grants import Caller, kept_at, server_at
from helpers.oauth_attacks import (
    ESCAPES,
    RESOURCE,
    SERVER,
    Page,
    Rogue,
    allow,
    attempt,
    nowhere,
    refused,
)
from helpers.oauth_attacks import make as make
from helpers.oauth_attacks import rogue as rogue

from mcpzip.auth.discovery import check_metadata, find_resource, find_server
from mcpzip.auth.metadata import ServerMetadata
from mcpzip.auth.store import Store
from mcpzip.model.errors import LoginError
from mcpzip.model.limits import AUTH_ANSWER


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return kept_at(tmp_path)


# ---- the sign-in page


@pytest.mark.parametrize(
    "page",
    [
        "javascript://localhost/%0aalert(1)",
        "file://localhost/etc/passwd",
        "file:///etc/passwd",
        "ms-settings://localhost/",
        "http://elsewhere.invalid/authorize",
        "http://127.elsewhere.invalid/authorize",
        "https://user:pass@elsewhere.invalid/authorize",
    ],
)
async def test_a_sign_in_page_that_is_no_safe_web_page_never_reaches_a_browser(
    store: Store, rogue: Rogue, page: str
) -> None:
    rogue.issues(authorization_endpoint=page)
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    assert outcome.person.shown == []
    refused(outcome, "", store, rogue)
    assert outcome.sentence
    assert [seen for seen in rogue.heard if seen.path == "/token"] == []


async def test_a_sign_in_page_can_t_take_the_parameters_apart(store: Store, rogue: Rogue) -> None:
    rogue.issues(authorization_endpoint=f"{rogue.url}/authorize#")
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, "has no state", store, rogue)


# ---- metadata


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("of", [SERVER, RESOURCE])
async def test_metadata_without_end_are_not_read_to_the_end(
    store: Store, rogue: Rogue, of: str, zipped: bool
) -> None:
    body = b" " * (100 * AUTH_ANSWER)
    rogue.pages[of] = Page(gzip.compress(body), 200, {"Content-Encoding": "gzip"}) if zipped else Page(body)
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, "answers with more than 1,048,576 bytes", store, rogue)


async def test_metadata_that_never_end_are_not_waited_for(
    store: Store, rogue: Rogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time; a refresh meanwhile holds the lock of the store."""
    monkeypatch.setattr("mcpzip.auth.discovery.TIMEOUT", 2.0)
    rogue.pages[SERVER] = Page(drips=True)
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, "has not answered within 2 s", store, rogue)


async def test_a_header_of_any_letters_is_borne(store: Store, rogue: Rogue) -> None:
    odd = {"X-Odd": "é \x9b2J"}
    for path in (SERVER, "/token"):
        page = rogue.pages[path]
        assert isinstance(page, Page)
        page.headers = odd
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, allow)
    assert outcome.grant is not None, outcome.sentence


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"issuer": ' * 50_000, b"\xff\xfe", b"1" * 5000, b""])
async def test_metadata_that_are_none_are_refused(store: Store, rogue: Rogue, body: bytes) -> None:
    rogue.pages[SERVER] = Page(body)
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, "publishes no metadata", store, rogue)


@pytest.mark.parametrize(
    "told",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://elsewhere.invalid/resource",
        "http://[::1",
        "http://x:99999/",
        "//elsewhere.invalid/",
        "file:///etc/passwd",
        "http://127.elsewhere.invalid/",
    ],
)
async def test_a_challenge_that_leads_astray_is_refused(store: Store, rogue: Rogue, told: str) -> None:
    rogue.pages["/mcp"] = Page({}, 401, {"WWW-Authenticate": f'Bearer resource_metadata="{told}"'})
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, "", store, rogue)
    assert outcome.sentence
    async with Caller(
        store, server_at(f"{rogue.url}/mcp", grant="client_credentials", client_id="c"), float
    ) as one:
        assert await one.status() == 401
        assert one.oauth.failure is not None


@pytest.mark.parametrize(
    "inside", ["http://127.0.0.1:9/admin", "https://localhost/x", "https://[::1]/", "https://0.0.0.0/"]
)
async def test_a_server_elsewhere_sends_us_to_nothing_on_this_machine(inside: str) -> None:
    server = "https://shop.example/mcp"
    with pytest.raises(LoginError, match="on this very machine"):
        await find_resource(server, inside)
    with pytest.raises(LoginError, match="on this very machine"):
        await find_server(inside, server)


async def test_no_endpoint_of_a_server_elsewhere_is_on_this_machine() -> None:
    safe = {
        "issuer": "https://as.example",
        "authorization_endpoint": "https://as.example/a",
        "token_endpoint": "https://as.example/t",
        "code_challenge_methods_supported": ["S256"],
    }
    check_metadata(msgspec.convert(safe, ServerMetadata), ("https://shop.example/mcp",), pkce=True)
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"):
        for url in ("http://localhost:1/", "https://127.0.0.1/", "http://[::ffff:127.0.0.1]/"):
            said = msgspec.convert({**safe, name: url}, ServerMetadata)
            with pytest.raises(LoginError, match="on this very machine"):
                check_metadata(said, ("https://shop.example/mcp",), pkce=True)


# ---- the registration


async def test_a_registration_can_t_change_where_the_browser_comes_back(store: Store, rogue: Rogue) -> None:
    swapped = {
        "client_id": "known",
        "redirect_uris": ["https://evil.example/callback"],
        "issuer": "https://evil.example",
    }
    rogue.pages["/register"] = Page(swapped, 201)
    seen: list[str] = []

    def go(url: str) -> object:
        seen.extend(parse_qs(urlsplit(url).query)["redirect_uri"])
        return allow(url)

    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, go)
    assert outcome.grant is not None, outcome.sentence
    assert [urlsplit(uri).hostname for uri in seen] == ["127.0.0.1"]
    assert outcome.grant.issuer == rogue.url
    (exchange,) = (parse_qs(one.body) for one in rogue.heard if one.path == "/token")
    assert exchange["redirect_uri"] == seen


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            Page({"error": "invalid_client_metadata", "error_description": ESCAPES}, 400),
            "invalid_client_metadata",
        ),
        (Page(b"<html>rogue-secret" + b"x" * 100_000, 500), "HTTP 500"),
        (Page(b"\xff\xfe", 403), "HTTP 403"),
        (Page({"client_secret": "rogue-secret"}, 201), "not as RFC 7591 has it"),
        (Page({"client_id": ["x"], "client_secret": "rogue-secret"}, 201), "not as RFC 7591 has it"),
        (Page(b"[" * 200_000, 201), "not as RFC 7591 has it"),
        (Page({"client_id": "a\ud800"}, 201), "can't be sent back"),
        (Page({"client_id": "x", "token_endpoint_auth_method": ESCAPES}, 201), ""),
    ],
    ids=["escapes", "page", "bytes", "no-id", "shape", "deep", "surrogate", "method"],
)
async def test_a_registration_that_is_of_no_use(
    store: Store, rogue: Rogue, page: Page, sentence: str
) -> None:
    rogue.pages["/register"] = page
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, sentence, store, rogue)
    assert outcome.sentence
