"""mcpzip as a resource server, over real sockets, with an issuer that runs: who is let in, and what all
others are told.

Sources: 2025-11-25 and 2026-07-28 `basic/authorization`; RFC 6750 (3), 7662, 8707, 9068, 9728.
"""

import asyncio
import json
import time
from pathlib import Path

import pytest
from helpers.raw_http_client import Script, site
from helpers.resource_server import (
    CALL,
    CALL_HEADERS,
    DOCUMENT,
    URL,
    StartAuth,
    call,
    challenge,
    config,
    people,
    who,
)
from helpers.resource_server import auth as auth
from mcpzip_fakes.oauth.server import FakeAuth

from mcpzip.identity import jwks
from mcpzip.identity.api_keys import new_key, remove_keys
from mcpzip.model import limits
from mcpzip.model.errors import ConfigError
from mcpzip.server.http.access import access_to, read_address
from mcpzip.server.http.people import People
from mcpzip.system.files import write_atomic

# --- what anybody may know


@pytest.mark.parametrize("path", [f"{DOCUMENT}/team/mcp", DOCUMENT])
async def test_where_to_sign_in_is_said_to_anybody(auth: FakeAuth, path: str) -> None:
    async with site(Script(), people=people(auth, scopes=["mcp"])) as web:
        reply = await web.ask("GET", None, path, Host="somewhere.example", Accept="*/*")
        assert reply.status == 200
        assert json.loads(reply.body) == {
            "resource": URL,
            "resource_name": "mcpzip",
            "authorization_servers": [auth.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["mcp"],
        }
        assert (await web.ask("POST", b"{}", path)).status == 405
        assert (await web.ask("GET", None, f"{DOCUMENT}/mcp")).status == 404


async def test_a_web_page_may_ask_where_to_sign_in(auth: FakeAuth) -> None:
    page = "https://app.example.org"
    access = access_to(read_address("0"), None, (), (page,), config({"api_keys": "k"}).http)
    async with site(Script(), access, people=people(auth)) as web:
        asked = {"Origin": page, "Access_Control_Request_Headers": "mcp-protocol-version"}
        reply = await web.ask("OPTIONS", None, DOCUMENT, **asked)
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (204, page)
        reply = await web.ask("GET", None, DOCUMENT, Origin=page, Accept="*/*")
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, page)
        reply = await web.ask("POST", CALL, **CALL_HEADERS, Origin=page)
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (401, page)


def test_the_public_url_is_a_host_and_people_are_enough_for_others_to_connect() -> None:
    known = config({"public_url": URL, "issuers": ["https://i.example"]}).http
    for address in ("0.0.0.0:0", "127.0.0.1:0"):
        access = access_to(read_address(address), None, (), (), known)
        assert access.allows_host("mcp.example.org")
        assert access.allows_host("mcp.example.org:443")
        assert not access.allows_host("other.example.org")
    with pytest.raises(ConfigError, match="people sign in"):
        access_to(read_address("0"), b"x" * 40, (), (), known)
    with pytest.raises(ConfigError, match="have people sign in"):
        access_to(read_address("0.0.0.0:0"), None, (), (), None)


async def test_without_issuers_there_is_nowhere_to_sign_in(tmp_path: Path) -> None:
    known = People(config({"api_keys": "keys.json"}, tmp_path), [].append)
    async with site(Script(who=who), people=known) as web:
        assert (await web.ask("GET", None, DOCUMENT)).status == 404
        reply = await call(web, None)
        assert reply.status == 401
        assert challenge(reply) == {"realm": "mcpzip"}


async def test_health_needs_no_token(auth: FakeAuth) -> None:
    async with site(Script(), people=people(auth)) as web:
        assert (await web.ask("GET", None, "/health")).status == 200


# --- tokens


async def test_who_has_no_token_is_told_where_to_get_one(auth: FakeAuth) -> None:
    async with site(Script(who=who), people=people(auth, scopes=["mcp", "read"])) as web:
        for headers in ({}, {"Authorization": "Basic YTpi"}):
            reply = await web.ask("POST", CALL, **{**CALL_HEADERS, **headers})
            assert reply.status == 401
            assert challenge(reply) == {
                "realm": "mcpzip",
                "scope": "mcp read",
                "resource_metadata": f"https://mcp.example.org{DOCUMENT}/team/mcp",
            }


async def test_a_token_lets_in_whom_it_is_about(auth: FakeAuth) -> None:
    token = auth.sign(sub="u1", aud=URL, email="ann@example.org", groups=["dev"], scope="a b")
    async with site(Script(who=who), people=people(auth)) as web:
        reply = await call(web, token)
        assert reply.status == 200
        expected = {"who": ["u1", "ann@example.org"], "groups": ["dev"], "scopes": ["a", "b"]}
        assert reply.last["result"] == expected
        assert (await call(web, token)).status == 200
    assert len(auth.requests("jwks")) == 1
    assert len(auth.requests("metadata")) == 1


@pytest.mark.parametrize("discovery", ["oidc", "oidc-inserted"])
async def test_the_keys_are_found_by_every_kind_of_metadata(fake_auth: StartAuth, discovery: str) -> None:
    auth = fake_auth(access_tokens="jwt", algorithm="ES256", issuer_path="/team", discovery=discovery)
    async with site(Script(who=who), people=people(auth)) as web:
        assert (await call(web, auth.sign(sub="u1", aud=URL))).status == 200


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "https://other.example.org/mcp"}, "another resource"),
        ({"aud": "http://127.0.0.1:8931/mcp"}, "another resource"),  # what the Host header says
        ({"exp": int(time.time()) - 3600}, "expired"),
        ({"iss": "https://login.example.net"}, "no issuer that is trusted"),
    ],
)
async def test_any_other_token_is_invalid(auth: FakeAuth, claims: dict[str, object], why: str) -> None:
    token = auth.sign(**{"sub": "u1", "aud": URL, **claims})
    async with site(Script(who=who), people=people(auth)) as web:
        reply = await call(web, token)
        assert reply.status == 401
        told = challenge(reply)
        assert told["error"] == "invalid_token"
        assert why in told["error_description"]
        assert token not in str(reply)


async def test_a_token_in_the_query_is_none(auth: FakeAuth) -> None:
    token = auth.sign(sub="u1", aud=URL)
    async with site(Script(who=who), people=people(auth)) as web:
        reply = await web.ask("POST", CALL, f"/mcp?access_token={token}", **CALL_HEADERS)
        assert reply.status == 401


async def test_a_forwarded_host_changes_nothing(auth: FakeAuth) -> None:
    token = auth.sign(sub="u1", aud="https://evil.example/mcp")
    async with site(Script(who=who), people=people(auth)) as web:
        spoofed = {"X_Forwarded_Host": "evil.example", "Forwarded": "host=evil.example;proto=https"}
        reply = await web.ask("POST", CALL, **{**CALL_HEADERS, **spoofed, "Authorization": f"Bearer {token}"})
        assert reply.status == 401


async def test_two_tokens_are_none(auth: FakeAuth) -> None:
    token = auth.sign(sub="u1", aud=URL)
    async with site(Script(who=who), people=people(auth)) as web, web.connected() as connection:
        request = web.request("POST", CALL, **{**CALL_HEADERS, "Authorization": f"Bearer {token}"})
        await connection.write(request.replace(b"Host:", b"Authorization: Bearer x\r\nHost:"))
        assert (await connection.reply()).status == 400


async def test_a_scope_that_every_request_needs(auth: FakeAuth) -> None:
    async with site(Script(who=who), people=people(auth, scopes=["mcp", "read"])) as web:
        reply = await call(web, auth.sign(sub="u1", aud=URL, scope="read"))
        assert reply.status == 403
        assert challenge(reply) == {
            "realm": "mcpzip",
            "error": "insufficient_scope",
            "error_description": "The token lacks a scope.",
            "scope": "mcp read",
            "resource_metadata": f"https://mcp.example.org{DOCUMENT}/team/mcp",
        }
        assert (await call(web, auth.sign(sub="u1", aud=URL, scope="read mcp"))).status == 200


# --- keys


async def test_a_new_key_is_fetched_once(auth: FakeAuth, monkeypatch: pytest.MonkeyPatch) -> None:
    old = auth.sign(sub="u1", aud=URL)
    known = people(auth)
    async with site(Script(who=who), people=known) as web:
        assert (await call(web, old)).status == 200
        auth.rotate_keys()
        new = auth.sign(sub="u1", aud=URL)
        assert [(await call(web, new)).status for _ in range(3)] == [200, 200, 200]
        assert len(auth.requests("jwks")) == 2
        auth.rotate_keys()
        newer = auth.sign(sub="u1", aud=URL)
        # So soon after the last unknown key nothing is fetched, whatever tokens say.
        for _ in range(5):
            assert (await call(web, newer)).status == 401
        assert len(auth.requests("jwks")) == 2
        monkeypatch.setattr(jwks, "COOL_DOWN", 0.0)
        assert [(await call(web, newer)).status for _ in range(3)] == [200, 200, 200]
        assert len(auth.requests("jwks")) == 3
        monkeypatch.undo()
        assert (await call(web, old)).status == 401  # its key is published no more


async def test_a_flood_of_unknown_keys_asks_the_issuer_once(auth: FakeAuth) -> None:
    async with site(Script(who=who), people=people(auth)) as web:
        tokens = [auth.sign({"kid": f"k{number}"}, sub="u1", aud=URL) for number in range(20)]
        replies = await asyncio.gather(*(call(web, token) for token in tokens))
        assert {reply.status for reply in replies} == {401}
    assert len(auth.requests("jwks")) == 1


async def test_everybody_who_comes_at_once_waits_for_the_keys(
    fake_auth: StartAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUTHENTICATIONS", 2)
    slow = {"kind": "slow", "endpoint": "jwks", "seconds": 0.2}
    auth = fake_auth(access_tokens="jwt", faults=[slow])
    async with site(Script(who=who), people=people(auth)) as web:
        tokens = [auth.sign(sub=f"u{number}", aud=URL) for number in range(20)]
        replies = await asyncio.gather(*(call(web, token) for token in tokens))
        assert {reply.status for reply in replies} == {200}
    assert len(auth.requests("jwks")) == 1


async def test_an_issuer_is_asked_about_so_many_tokens_at_a_time(
    fake_auth: StartAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AUTHENTICATIONS", 2)
    auth = fake_auth(clients=[CLIENT], faults=[{"kind": "slow", "endpoint": "introspect", "seconds": 0.2}])
    known = people(auth, introspection={"endpoint": f"{auth.issuer}/introspect", **ASKED})
    async with site(Script(who=who), people=known) as web:
        replies = await asyncio.gather(*(call(web, f"token-{number}") for number in range(10)))
        statuses = sorted(reply.status for reply in replies)
        assert statuses == [401, 401, *[503] * 8]
        assert (await call(web, "token-11")).status == 401


async def test_while_the_issuer_is_away_no_token_is_said_to_be_wrong(fake_auth: StartAuth) -> None:
    auth = fake_auth(access_tokens="jwt", faults=[{"kind": "status", "endpoint": "jwks", "status": 500}])
    warned: list[str] = []
    async with site(Script(who=who), people=people(auth, warned)) as web:
        for _ in range(2):
            reply = await call(web, auth.sign(sub="u1", aud=URL))
            assert reply.status == 503
            assert reply.headers["retry-after"]
            assert "www-authenticate" not in reply.headers
    assert len(warned) == 1
    assert "HTTP 500" in warned[0]


async def test_the_last_keys_stay_while_the_issuer_is_away(
    auth: FakeAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, warned = auth.sign(sub="u1", aud=URL), list[str]()
    async with site(Script(who=who), people=people(auth, warned)) as web:
        assert (await call(web, token)).status == 200
        auth.configure(faults=[{"kind": "garbage", "endpoint": "jwks"}])
        monkeypatch.setattr(jwks, "RENEWED_AFTER", 0.0)
        monkeypatch.setattr(jwks, "COOL_DOWN", 0.0)
        while not warned:
            assert (await call(web, token)).status == 200
        monkeypatch.setattr(jwks, "KEPT", 0.0)
        assert (await call(web, token)).status == 503


async def test_metadata_of_another_issuer_are_not_believed(fake_auth: StartAuth) -> None:
    auth = fake_auth(access_tokens="jwt", metadata={"issuer": "https://evil.example"})
    warned: list[str] = []
    async with site(Script(who=who), people=people(auth, warned)) as web:
        assert (await call(web, auth.sign(sub="u1", aud=URL))).status == 503
    assert "evil.example" in warned[0]
    assert auth.requests("jwks") == []


# --- opaque tokens


ASKED = {"client_id": "mcpzip", "client_secret": "${SECRET}"}
CLIENT = {"id": "mcpzip", "secret": "the-secret-of-mcpzip", "grants": ["client_credentials"]}


async def test_an_opaque_token_is_asked_about_once(fake_auth: StartAuth) -> None:
    auth = fake_auth(clients=[CLIENT], resources=[URL], claims={"sub": "u1", "groups": ["dev"]}, scopes=["a"])
    token = str(auth.mint(resource=URL)["access_token"])
    known = people(auth, introspection={"endpoint": f"{auth.issuer}/introspect", **ASKED})
    async with site(Script(who=who), people=known) as web:
        replies = await asyncio.gather(*(call(web, token) for _ in range(5)))
        assert [reply.status for reply in replies] == [200] * 5
        assert replies[0].last["result"] == {"who": ["u1", "u1"], "groups": ["dev"], "scopes": ["a"]}
        assert (await call(web, token)).status == 200
        assert len(auth.requests("introspect")) == 1
        reply = await call(web, "unheard-of")
        assert reply.status == 401
        assert challenge(reply)["error"] == "invalid_token"


@pytest.mark.parametrize(
    "changed",
    [{"aud": "https://other.example"}, {"aud": None}, {"iss": "https://other.example"}, {"sub": None}],
)
async def test_an_opaque_token_is_for_us_too(fake_auth: StartAuth, changed: dict[str, object]) -> None:
    auth = fake_auth(clients=[CLIENT], resources=[URL], claims=changed)
    token = str(auth.mint(resource=URL)["access_token"])
    known = people(auth, introspection={"endpoint": f"{auth.issuer}/introspect", **ASKED})
    async with site(Script(who=who), people=known) as web:
        assert (await call(web, token)).status == 401


async def test_an_issuer_that_does_not_answer_about_a_token(fake_auth: StartAuth) -> None:
    auth = fake_auth(clients=[CLIENT], resources=[URL], faults=[{"kind": "status", "endpoint": "introspect"}])
    token = str(auth.mint(resource=URL)["access_token"])
    known = people(auth, introspection={"endpoint": f"{auth.issuer}/introspect", **ASKED})
    async with site(Script(who=who), people=known) as web:
        assert (await call(web, token)).status == 503


# --- API keys


async def test_api_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpzip.identity import api_keys

    monkeypatch.setattr(api_keys, "LOOK_EVERY", 0.0)
    path, warned = str(tmp_path / "keys.json"), list[str]()
    key = new_key(path, "ann", ["dev"], ["a"], time.time(), None)
    over = new_key(path, "bob", [], [], time.time(), time.time() - 1)
    known = People(config({"api_keys": "keys.json"}, tmp_path), warned.append)
    async with site(Script(who=who), people=known) as web:
        reply = await call(web, key)
        assert reply.last["result"] == {"who": ["ann", "ann"], "groups": ["dev"], "scopes": ["a"]}
        for wrong in (over, key[:-1] + ("A" if key[-1] != "A" else "B"), "mcpzip_", "x"):
            assert (await call(web, wrong)).status == 401
        remove_keys(path, "ann")
        assert (await call(web, key)).status == 401
        again = new_key(path, "ann", [], [], time.time(), None)
        assert (await call(web, again)).status == 200
        write_atomic(path, b"{")
        assert (await call(web, again)).status == 401
    assert len(warned) == 1
    assert "no API key is valid" in warned[0]
