"""Attacks on signing in, each the whole way: what the person is told, who heard what, and what is kept.

The rule: an attack ends in a sentence; no code, verifier, token or client secret has reached a host that it
is not for, and no token is kept.
"""

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from helpers.grants import Caller, grant_of, kept_at, server_at
from helpers.oauth_attacks import Outcome, Victim, attempt, get, harmless, leaked, nowhere
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls
from mcpzip_fakes.oauth.server import FakeAuth
from mcpzip_fakes.pytest_plugin import fake_auth as fake_auth

from mcpzip.auth.login import sign_in, sign_out
from mcpzip.auth.oauth import OAuth
from mcpzip.auth.store import Store, open_store
from mcpzip.config.schema import Config, Secret

Start = Callable[..., FakeServer]


@pytest.fixture
def shop(fake_mcp: Start) -> FakeServer:
    return fake_mcp(tools=["echo"], transport="http", oauth={})


@pytest.fixture
def auth(shop: FakeServer) -> AuthControls:
    assert shop.auth is not None
    return shop.auth


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return kept_at(tmp_path)


def keeps_a_token(store: Store, url: str) -> bool:
    kept = store.load(url)
    return kept is not None and bool(kept.access_token or kept.refresh_token)


def refused(outcome: Outcome, sentence: str, store: Store, url: str) -> None:
    """The login ended in ``sentence``, and no token is kept."""
    assert sentence in outcome.sentence
    assert harmless(outcome.sentence)
    assert not keeps_a_token(store, url)


# ---- at the callback


async def test_a_code_with_a_wrong_state_is_not_taken(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    pages: list[tuple[int, str]] = []

    def go(url: str) -> str:
        right = auth.leads_to(url)
        for state in ("", "x", "é", right.partition("state=")[2].partition("&")[0].swapcase()):
            place, _, query = right.partition("?")
            said = {**{key: value for key, (value,) in parse_qs(query).items()}, "state": state}
            pages.append(get(f"{place}?{urlencode(said)}"))
        assert auth.requests("token") == []
        assert not keeps_a_token(store, shop.url)
        return get(right)[1]

    outcome = await attempt(server_at(shop.url), store, go)
    assert [status for status, _ in pages] == [400] * 4
    assert "lacks the state of this login" in pages[0][1]
    assert all("state of another login" in page for _, page in pages[1:])
    assert "state of another login" in outcome.person.read
    assert outcome.grant is not None, outcome.sentence
    (exchange,) = auth.requests("token")
    assert exchange.status == 200


async def test_an_injected_code_is_of_no_use_without_its_login(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    """The code of the attacker's own login, in the victim's redirect: PKCE ends it."""

    def go(url: str) -> object:
        place, _, query = auth.leads_to(url).partition("?")
        mine = auth.mint(resource=shop.url, redirect_uris=[place])["client"]
        assert isinstance(mine, dict)
        other = url.replace(parse_qs(urlsplit(url).query)["client_id"][0], mine["client_id"], 1)
        code = auth.visit(other)["code"]
        said = {**{key: value for key, (value,) in parse_qs(query).items()}, "code": code}
        return get(f"{place}?{urlencode(said)}")

    outcome = await attempt(server_at(shop.url), store, go)
    refused(outcome, "invalid_grant", store, shop.url)
    assert outcome.person.page == (502, outcome.person.page[1])  # type: ignore[index]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"}, 403),
        ({"Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
async def test_a_callback_from_a_page_of_another_origin_is_not_taken(
    store: Store, shop: FakeServer, auth: AuthControls, headers: dict[str, str], status: int
) -> None:
    def go(url: str) -> str:
        right = auth.leads_to(url)
        assert get(right, **headers)[0] == status
        assert auth.requests("token") == []
        return get(right)[1]

    outcome = await attempt(server_at(shop.url), store, go)
    assert outcome.grant is not None, outcome.sentence
    assert len(auth.requests("token")) == 1


async def test_another_issuer_s_answer_is_refused(store: Store, shop: FakeServer, auth: AuthControls) -> None:
    auth.configure(iss="wrong")
    outcome = await attempt(server_at(shop.url), store, lambda url: get(auth.leads_to(url)))
    refused(outcome, "came back from another authorization server", store, shop.url)
    assert auth.requests("token") == []


async def test_an_issuer_that_is_promised_and_missing_is_refused(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    auth.configure(iss="missing")
    outcome = await attempt(server_at(shop.url), store, lambda url: get(auth.leads_to(url)))
    refused(outcome, "came back without saying from which authorization server", store, shop.url)
    assert auth.requests("token") == []


# ---- lying metadata


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        ("issuer", "says that it is http://elsewhere.invalid/issuer"),
        ("foreign-server", "says that it is http://127.0.0.1"),
        ("http-token", "http://elsewhere.invalid/token, which is not encrypted; it has to be https"),
        ("plain-pkce", "offers plain only, and PKCE with S256 is what keeps a stolen code from being used"),
        ("no-pkce", "does not say that it has it, and PKCE with S256"),
        ("resource", "http://elsewhere.invalid/mcp, and tokens for that are not for"),
    ],
)
async def test_a_lie_is_refused_before_anybody_is_asked(
    store: Store, shop: FakeServer, auth: AuthControls, lie: str, sentence: str
) -> None:
    auth.configure(lies=[lie])
    refused(await attempt(server_at(shop.url), store, nowhere), sentence, store, shop.url)
    assert auth.requests("register") == auth.requests("authorize") == auth.requests("token") == []
    assert leaked(auth) == []


async def test_metadata_at_another_origin_count_for_their_own_resource_only(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    """RFC 9728, 3.3: they may be anywhere, and have to name the very server that was asked."""
    auth.configure(lies=["foreign-metadata"])
    outcome = await attempt(server_at(shop.url), store, lambda url: get(auth.leads_to(url)))
    assert outcome.grant is not None, outcome.sentence
    assert leaked(auth) == []


@pytest.mark.parametrize("endpoint", ["resource", "metadata", "register", "token"])
@pytest.mark.parametrize("status", [302, 307, 308])
async def test_nothing_follows_a_redirect_to_another_host(
    store: Store, shop: FakeServer, auth: AuthControls, endpoint: str, status: int
) -> None:
    auth.configure(faults=[{"kind": "redirect", "endpoint": endpoint, "status": status}])
    outcome = await attempt(server_at(shop.url), store, lambda url: get(auth.leads_to(url)))
    assert [request for request in auth.requests() if request.host.startswith("localhost")] == []
    if endpoint in ("register", "token"):
        refused(outcome, "redirects to http://localhost:", store, shop.url)


# ---- tokens where they don't belong


async def test_a_refresh_token_follows_no_redirect(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    store.save(grant_of(auth, shop.url))
    auth.advance(4000)
    auth.configure(faults=[{"kind": "redirect", "endpoint": "token"}])
    async with Caller(store, server_at(shop.url), lambda: auth.now) as client:
        assert await client.status() == 401
        assert client.oauth.failure is not None
        assert "HTTP 307" in client.oauth.failure.reason
    assert leaked(auth) == []


async def test_a_revocation_follows_no_redirect(store: Store, shop: FakeServer, auth: AuthControls) -> None:
    store.save(grant_of(auth, shop.url))
    auth.configure(faults=[{"kind": "redirect", "endpoint": "revoke"}])
    (left,) = await sign_out(server_at(shop.url), store)
    assert "HTTP 307" in left
    assert leaked(auth) == []
    assert store.load(shop.url) is None


async def test_a_server_that_asks_for_the_token_of_another(
    store: Store, fake_mcp: Start, fake_auth: Callable[..., FakeAuth]
) -> None:
    """The original tried one server's token on another."""
    auth = fake_auth()
    bank = fake_mcp(name="bank", tools=["pay"], transport="http", auth=auth)
    thief = fake_mcp(
        name="thief",
        tools=["echo"],
        transport="http",
        auth=auth,
        oauth={"resource_fields": {"resource": bank.url}},
    )
    store.save(grant_of(auth, bank.url))
    outcome = await attempt(server_at(thief.url), store, nowhere)
    refused(outcome, f"{bank.url}, and tokens for that are not for {thief.url}", store, thief.url)
    async with Caller(store, server_at(thief.url), lambda: auth.now) as client:
        assert await client.status() == 401
    assert {event.detail["raw"] for event in thief.record.events("bearer")} <= {"", None}
    assert store.load(bank.url) is not None


async def test_a_token_goes_to_its_own_origin_only(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    """Whatever asks for a signature: a redirect that was followed, an address out of an event stream."""
    import httpx

    store.save(grant_of(auth, shop.url))
    oauth = OAuth(server_at(shop.url), store)
    for url in (shop.url.replace("127.0.0.1", "localhost"), "https://evil.example/mcp", shop.url + "/more"):
        flow = oauth.async_auth_flow(httpx.Request("POST", url))
        signed = await flow.__anext__()
        assert ("Authorization" in signed.headers) == url.startswith(shop.url)
        await flow.aclose()


async def test_a_token_is_not_sent_where_others_can_listen(store: Store, auth: AuthControls) -> None:
    import httpx

    url = "http://elsewhere.invalid/mcp"
    store.save(grant_of(auth, url))
    oauth = OAuth(server_at(url), store)
    flow = oauth.async_auth_flow(httpx.Request("POST", url))
    assert "Authorization" not in (await flow.__anext__()).headers
    await flow.aclose()


async def test_a_secret_of_ours_stays_out_of_what_is_said(
    store: Store, shop: FakeServer, auth: AuthControls
) -> None:
    secret = "hunter2-hunter2"
    server = server_at(shop.url, client_id="ours", client_secret=Secret(secret))
    auth.configure(
        clients=[{"id": "ours", "secret": "another", "redirect_uris": ["http://127.0.0.1/callback"]}]
    )
    outcome = await attempt(server, store, lambda url: get(auth.leads_to(url)))
    refused(outcome, "invalid_client", store, shop.url)
    assert secret not in outcome.sentence + outcome.person.read + repr(server)


# ---- the file


def kept(shop: FakeServer, auth: AuthControls, folder: Path) -> tuple[Store, Path, list[str]]:
    """A store with a sign-in to ``shop``, the file that it is in, and what the store warns of."""
    warnings: list[str] = []
    store = open_store(Config(path=str(folder / "config.json"), servers={}), warnings.append)
    store.save(grant_of(auth, shop.url))
    (file,) = (folder / "auth").glob("*.json")
    return store, file, warnings


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights, and links need one")
async def test_a_file_that_is_open_to_others_is_closed(
    shop: FakeServer, auth: AuthControls, tmp_path: Path
) -> None:
    store, file, warnings = kept(shop, auth, tmp_path)
    file.chmod(0o644)
    async with Caller(store, server_at(shop.url), lambda: auth.now) as client:
        assert await client.status() == 200
    assert file.stat().st_mode & 0o777 == 0o600
    assert warnings == [f"{file} was open to other users; now it is only yours."]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights, and links need one")
async def test_a_file_that_is_a_link_becomes_one_of_its_own(
    shop: FakeServer, auth: AuthControls, tmp_path: Path
) -> None:
    store, file, warnings = kept(shop, auth, tmp_path)
    target = tmp_path / "somewhere.json"
    file.rename(target)
    file.symlink_to(target)
    before = target.read_bytes()
    async with Caller(store, server_at(shop.url), lambda: auth.now) as client:
        auth.revoke_access()
        assert await client.status() == 200
    assert not file.is_symlink()
    assert target.read_bytes() == before
    assert any("is a link to" in warning for warning in warnings)


async def test_a_login_that_nobody_answers_keeps_nothing_secret(store: Store, shop: FakeServer) -> None:
    person = Victim(lambda url: None, timeout=0.05)
    with pytest.raises(Exception, match="Nobody signed in"):
        async with person:
            await sign_in(server_at(shop.url), store, person)
    assert not keeps_a_token(store, shop.url)
