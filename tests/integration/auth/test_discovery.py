"""How the authorization server of a server is found, and what is asked of it, in order."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from helpers.grants import Caller, kept_at, server_at
from helpers.oauth_attacks import SERVER, TOKENS, Page, Rogue, allow, attempt, nowhere, refused
from helpers.oauth_attacks import make as make
from helpers.oauth_attacks import rogue as rogue

from mcpzip.auth.codec import key
from mcpzip.auth.grant import Grant
from mcpzip.auth.oauth import HEADER, NOBODY_SIGNED_IN, OAuth
from mcpzip.auth.store import Store
from mcpzip.config.schema import Secret

ELSEWHERE = "https://as.example"
KNOWN = "/.well-known"
PROTECTED = f"{KNOWN}/oauth-protected-resource"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return kept_at(tmp_path)


def asked(rogue: Rogue) -> list[str]:
    """What was fetched to find out how to sign in."""
    return [seen.path for seen in rogue.heard if seen.path.startswith(KNOWN) or KNOWN in seen.path]


def form(rogue: Rogue) -> dict[str, str]:
    """What the token endpoint was asked last."""
    last = [seen for seen in rogue.heard if seen.path == "/token"][-1]
    return {name: value for name, (value,) in parse_qs(last.body).items()}


async def test_a_challenge_is_followed_and_then_the_well_known_places(store: Store, rogue: Rogue) -> None:
    rogue.pages["/mcp"] = Page({}, 401, {"WWW-Authenticate": f'Bearer resource_metadata="{rogue.url}/meta"'})
    known = rogue.pages.pop(f"{PROTECTED}/mcp")
    rogue.pages[PROTECTED] = known
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, allow)
    assert outcome.grant is not None, outcome.sentence
    order = [seen.path for seen in rogue.heard if seen.verb == "GET"]
    assert order == ["/meta", f"{PROTECTED}/mcp", PROTECTED, SERVER]
    assert {
        seen.headers["mcp-protocol-version"] for seen in rogue.heard if seen.verb == "GET"
    } == {"2026-07-28"}  # fmt: skip


async def test_an_issuer_with_a_path_is_asked_for_in_three_places(store: Store, rogue: Rogue) -> None:
    rogue.protects(f"{rogue.url}/tenant")
    rogue.issues(issuer=f"{rogue.url}/tenant")
    rogue.pages[f"/tenant{KNOWN}/openid-configuration"] = rogue.pages.pop(SERVER)
    rogue.pages[f"{KNOWN}/openid-configuration/tenant"] = Page({}, 302, {"Location": "/elsewhere"})
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, allow)
    assert outcome.grant is not None, outcome.sentence
    assert asked(rogue)[-3:] == [
        f"{KNOWN}/oauth-authorization-server/tenant",
        f"{KNOWN}/openid-configuration/tenant",
        f"/tenant{KNOWN}/openid-configuration",
    ]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_resource_that_fails_is_none_without_metadata(
    store: Store, rogue: Rogue, status: int
) -> None:
    """It would send us to whatever is at its own origin."""
    rogue.pages[f"{PROTECTED}/mcp"] = Page({}, status)
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, f"HTTP {status}", store, rogue)
    assert SERVER not in asked(rogue)


@pytest.mark.parametrize("documented", [True, False], ids=["metadata", "nothing"])
async def test_a_server_of_2025_03_26_is_its_own_authorization_server(
    store: Store, rogue: Rogue, documented: bool
) -> None:
    del rogue.pages[f"{PROTECTED}/mcp"]
    rogue.pages["/mcp"] = Page({}, 401)
    if not documented:
        del rogue.pages[SERVER]
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, allow)
    assert outcome.grant is not None, outcome.sentence
    assert outcome.grant.issuer == (rogue.url if documented else "")
    assert urlsplit(outcome.person.shown[0]).path == "/authorize"
    assert form(rogue)["resource"] == f"{rogue.url}/mcp"  # the refused request was of a version that has it
    assert asked(rogue)[-3:] == [f"{PROTECTED}/mcp", PROTECTED, SERVER]


async def test_a_legacy_server_has_to_be_its_own_issuer(store: Store, rogue: Rogue) -> None:
    del rogue.pages[f"{PROTECTED}/mcp"]
    rogue.issues(issuer="https://elsewhere.example")
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, nowhere)
    refused(outcome, "what is there says that it is https://elsewhere.example", store, rogue)


async def test_the_query_of_a_sign_in_page_stays(store: Store, rogue: Rogue) -> None:
    rogue.issues(authorization_endpoint=f"{rogue.url}/authorize?tenant=7")
    outcome = await attempt(server_at(f"{rogue.url}/mcp"), store, allow)
    assert outcome.grant is not None, outcome.sentence
    query = parse_qs(urlsplit(outcome.person.shown[0]).query)
    assert query["tenant"] == ["7"]
    assert query["code_challenge_method"] == ["S256"]


async def test_a_configured_secret_is_shown_as_the_server_takes_it(store: Store, rogue: Rogue) -> None:
    rogue.issues(token_endpoint_auth_methods_supported=["client_secret_post"])
    server = server_at(f"{rogue.url}/mcp", client_id="ours", client_secret=Secret("rogue-secret"))
    outcome = await attempt(server, store, allow)
    assert outcome.grant is not None, outcome.sentence
    assert form(rogue)["client_secret"] == "rogue-secret"
    assert all("authorization" not in seen.headers for seen in rogue.heard)


# ---- what is known of before


def of_the_sdk(rogue: Rogue) -> dict[str, object]:
    """A sign-in as mcpzip kept it when the SDK's provider did the flow."""
    return {
        "url": f"{rogue.url}/mcp",
        "resource": f"{rogue.url}/mcp",
        "issuer": rogue.url,
        "client": {
            "response_types": ["code"],
            "client_name": "mcpzip",
            "software_id": "mcpzip",
            "software_version": "0.1.0",
            "redirect_uris": ["http://127.0.0.1:49152/callback"],
            "token_endpoint_auth_method": "client_secret_post",
            "grant_types": ["authorization_code", "refresh_token"],
            "application_type": "native",
            "client_id": "known",
            "client_secret": "rogue-secret",
            "client_id_issued_at": 1767225600,
            "client_secret_expires_at": 0,
        },
        "access_token": "rogue-access-0000",
        "refresh_token": "rogue-refresh-0000",
        "scope": "read",
        "expires_at": 1.0,
        "obtained_at": 1.0,
        "server_metadata": {
            "issuer": rogue.url,
            "authorization_endpoint": f"{rogue.url}/authorize",
            "token_endpoint": f"{rogue.url}/token",
            "response_types_supported": ["code"],
            "introspection_endpoint": f"{rogue.url}/introspect",
            "code_challenge_methods_supported": ["S256"],
        },
        "resource_metadata": {
            "resource": f"{rogue.url}/mcp",
            "authorization_servers": [f"{rogue.url}/"],
            "bearer_methods_supported": ["header"],
        },
    }


async def test_who_signed_in_with_the_sdk_s_flow_stays_signed_in(
    store: Store, rogue: Rogue, tmp_path: Path
) -> None:
    url = f"{rogue.url}/mcp"
    store.save(Grant(url=url))  # which makes the folder
    said = {"format": "mcpzip-sign-in", "version": 1, "grant": of_the_sdk(rogue)}
    (tmp_path / "auth" / f"{key(url)}.json").write_text(json.dumps(said))
    rogue.pages["/mcp"] = lambda seen: Page(
        {}, 200 if "1234" in seen.headers.get("authorization", "") else 401
    )
    async with Caller(store, server_at(url), lambda: 1000.0) as client:
        assert await client.status() == 200
    assert form(rogue) == {
        "grant_type": "refresh_token",
        "refresh_token": "rogue-refresh-0000",
        "client_id": "known",
        "client_secret": "rogue-secret",
        "resource": url,
    }
    kept = store.load(url)
    assert kept is not None
    assert (kept.scope, kept.issuer, kept.access_token) == ("read", rogue.url, TOKENS["access_token"])
    assert asked(rogue) == []


@pytest.mark.parametrize(("issuer", "named"), [("", True), (ELSEWHERE, True), (ELSEWHERE, False)])
async def test_a_refresh_token_goes_nowhere_but_to_its_issuer(
    store: Store, rogue: Rogue, issuer: str, named: bool
) -> None:
    """Where the metadata of the issuer were gone, it went to the MCP server itself."""
    known = {**of_the_sdk(rogue), "issuer": issuer, "server_metadata": None, "resource_metadata": None}
    store.save(Grant(**known))  # type: ignore[arg-type]
    rogue.pages.clear()
    if named:
        rogue.protects(f"{rogue.url}/gone")
    async with Caller(store, server_at(f"{rogue.url}/mcp"), lambda: 1000.0) as client:
        assert await client.status() in (401, 404)
        assert client.oauth.failure is not None
        assert "publishes no metadata" in client.oauth.failure.reason
    assert [seen for seen in rogue.heard if seen.path == "/token"] == []
    kept = store.load(f"{rogue.url}/mcp")
    assert kept is not None
    assert kept.refresh_token == "rogue-refresh-0000"


# ---- nobody has signed in


async def test_without_a_sign_in_a_request_goes_out_once_as_it_is(store: Store, rogue: Rogue) -> None:
    """A password in the address is the server's business until there is a token."""
    rogue.pages["/mcp"] = Page({"jsonrpc": "2.0", "id": 1, "result": {}})
    oauth = OAuth(server_at(f"{rogue.url}/mcp"), store)
    own = {"Authorization": "Basic dTpw"}
    async with httpx.AsyncClient(auth=oauth, trust_env=False) as client:
        assert (await client.post(f"{rogue.url}/mcp", headers=own)).status_code == 200
        assert oauth.failure is None
        for status, header in ((401, HEADER), (403, None)):
            rogue.heard.clear()
            rogue.pages["/mcp"] = Page({}, status)
            assert (await client.post(f"{rogue.url}/mcp", headers=own)).status_code == status
            assert [seen.headers.get("authorization") for seen in rogue.heard] == ["Basic dTpw"]
            assert (oauth.failure and oauth.failure.remedy) == header
        rogue.pages["/mcp"] = Page({}, 401, {"WWW-Authenticate": 'Bearer resource_metadata="https://x/"'})
        await client.post(f"{rogue.url}/mcp", headers=own)
        assert oauth.failure is not None
        assert (oauth.failure.reason, oauth.failure.remedy) == (NOBODY_SIGNED_IN, "")
        store.save(Grant(url=f"{rogue.url}/mcp", access_token="rogue-access-1234"))
        rogue.heard.clear()
        rogue.pages["/mcp"] = Page({})
        await client.post(f"{rogue.url}/mcp", headers=own)
        assert [seen.headers["authorization"] for seen in rogue.heard] == ["Bearer rogue-access-1234"]
        store.remove(f"{rogue.url}/mcp")
        await client.post(f"{rogue.url}/mcp")
        assert "authorization" not in rogue.heard[-1].headers
