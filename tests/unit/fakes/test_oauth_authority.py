"""The fake authorization server's decisions, without HTTP: what it grants, and all that it refuses."""

import msgspec
import pytest
from helpers.oauth_authority import (
    MCP,
    ORIGIN,
    authority,
    back,
    code,
    exchange,
    good,
    refresh,
    refused,
    registered,
    request,
    signed_in,
)
from hypothesis import given
from hypothesis import strategies as st
from mcpzip_fakes.oauth.authority import Asked, same
from mcpzip_fakes.oauth.errors import Refused, ShownToPerson


def test_a_code_becomes_tokens_for_one_resource() -> None:
    server = authority(scopes=["read", "write"])
    _, answer = signed_in(server, scope="read")
    assert (answer["token_type"], answer["expires_in"], answer["scope"]) == ("Bearer", 3600, "read")
    token, why = server.judge(answer["access_token"], (MCP,))
    assert (token and token.scope, token and token.resource, why) == (("read",), MCP, "")
    assert (
        server.judge(answer["access_token"], ("http://127.0.0.1:1/mcp",))[1] == "it is for another resource"
    )
    assert not good(server, answer["refresh_token"])


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"resource": "http://127.0.0.1:1/mcp"}, "invalid_target"),
        ({"resource": None}, "invalid_target"),
    ],
)
def test_a_request_out_of_order_is_sent_back(changed: dict[str, str | None], error: str) -> None:
    server = authority()
    sent = server.ask(request(registered(server), **changed))
    assert isinstance(sent, str)
    told = back(sent)
    assert (told["error"], told["state"], told["iss"], "code" in told) == (error, "s", ORIGIN, False)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"client_id": "nobody"}, "There is no client 'nobody'"),
        ({"redirect_uri": "https://evil.example/callback"}, "is not one of this client's"),
        ({"redirect_uri": "http://127.0.0.1:7777/other"}, "is not one of this client's"),
        ({"redirect_uri": None}, "is not one of this client's"),
    ],
)
def test_nobody_is_sent_where_it_is_not_known_to_be_right(
    changed: dict[str, str | None], sentence: str
) -> None:
    server = authority()
    with pytest.raises(ShownToPerson, match=sentence):
        server.ask(request(registered(server), **changed))


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:8888/callback"}, "invalid_grant"),
        ({"redirect_uri": ""}, "invalid_grant"),
        ({"code": "code-1-guessed"}, "invalid_grant"),
        ({"resource": ORIGIN}, "invalid_target"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_secret": "guessed"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unauthorized_client"),
    ],
)
def test_an_exchange_that_does_not_fit_is_refused(changed: dict[str, str], error: str) -> None:
    server = authority()
    client = registered(server)
    assert refused(server, exchange(client, code(server, client), **changed)) == error


def test_a_code_of_another_client_is_refused() -> None:
    server = authority()
    one, other = registered(server), registered(server)
    assert refused(server, exchange(other, code(server, one))) == "invalid_grant"


def test_a_replayed_code_ends_what_it_brought() -> None:
    server = authority()
    client = registered(server)
    form = exchange(client, code(server, client))
    answer = server.token(form, "")
    assert good(server, answer["access_token"])
    assert refused(server, form) == "invalid_grant"
    assert not good(server, answer["access_token"])
    assert refused(server, refresh(client, answer["refresh_token"])) == "invalid_grant"


def test_times_run_out_by_the_clock() -> None:
    server = authority(access_seconds=60, refresh_seconds=600, code_seconds=5)
    client, answer = signed_in(server)
    late = code(server, client)
    server.advance(61)
    assert not good(server, answer["access_token"])
    assert refused(server, exchange(client, late)) == "invalid_grant"
    again = server.token(refresh(client, answer["refresh_token"]), "")
    assert good(server, again["access_token"])
    server.advance(601)
    assert refused(server, refresh(client, again["refresh_token"])) == "invalid_grant"


def test_a_reused_refresh_token_ends_the_family_and_no_other() -> None:
    server = authority()
    client, first = signed_in(server)
    _, stranger = signed_in(server)
    second = server.token(refresh(client, first["refresh_token"]), "")
    assert refused(server, refresh(client, first["refresh_token"])) == "invalid_grant"
    assert refused(server, refresh(client, second["refresh_token"])) == "invalid_grant"
    assert not good(server, second["access_token"])
    assert good(server, stranger["access_token"])


@given(st.lists(st.integers(0, 5), max_size=12))
def test_at_most_one_refresh_token_of_a_family_is_good(picks: list[int]) -> None:
    server = authority()
    client, answer = signed_in(server)
    had, reused = [answer["refresh_token"]], False
    for pick in picks:
        token = had[pick % len(had)]
        if token == had[-1] and not reused:
            had.append(server.token(refresh(client, token), "")["refresh_token"])
        else:
            assert refused(server, refresh(client, token)) == "invalid_grant"
            reused = True
        assert len(server.ledger.good("refresh")) == (0 if reused else 1)
    assert bool(server.ledger.good("access")) is not reused


@pytest.mark.parametrize(("way", "again"), [("keep", False), ("none", False), ("rotate", True)])
def test_ways_to_give_refresh_tokens(way: str, again: bool) -> None:
    server = authority(refresh=way)
    client, answer = signed_in(server)
    assert ("refresh_token" in answer) == (way != "none")
    if way != "none":
        for _ in range(2 if way == "keep" else 1):
            assert ("refresh_token" in server.token(refresh(client, answer["refresh_token"]), "")) is again


def test_a_refresh_may_ask_for_less_and_not_for_more() -> None:
    server = authority(scopes=["read", "write"])
    client, answer = signed_in(server, scope="read")
    assert refused(server, refresh(client, answer["refresh_token"], scope="read write")) == "invalid_scope"
    assert refused(server, refresh(client, answer["refresh_token"], resource=ORIGIN)) == "invalid_target"
    assert (
        server.token(refresh(client, answer["refresh_token"], scope="read", resource=MCP), "")["scope"]
        == "read"
    )


def test_offline_access_has_to_be_asked_for() -> None:
    server = authority(scopes=["read"], offline=True)
    assert "refresh_token" not in signed_in(server, scope="read")[1]
    assert "refresh_token" in signed_in(server, scope="read offline_access")[1]


def test_less_than_was_asked_for() -> None:
    server = authority(scopes=["read", "write"], granted_scopes=["read"])
    assert signed_in(server, scope="read write")[1]["scope"] == "read"


def test_revocation_by_the_client() -> None:
    server = authority()
    client, answer = signed_in(server)
    server.revoke({"token": "unknown", "client_id": client}, "")
    with pytest.raises(Refused, match="another client"):
        server.revoke({"token": answer["access_token"], "client_id": registered(server)}, "")
    server.revoke({"token": answer["access_token"], "client_id": client}, "")
    assert not good(server, answer["access_token"])
    again = server.token(refresh(client, answer["refresh_token"]), "")
    server.revoke({"token": again["refresh_token"], "client_id": client}, "")
    assert not good(server, again["access_token"])
    assert refused(server, refresh(client, again["refresh_token"])) == "invalid_grant"


def test_how_the_answer_comes_back() -> None:
    for told, wanted in (
        ({}, {"state": "s", "iss": ORIGIN}),
        ({"iss": "missing", "state": "missing"}, {}),
        (
            {"iss": "wrong", "state": "wrong"},
            {"state": "s-of-somebody-else", "iss": "http://elsewhere.invalid/issuer"},
        ),
    ):
        server = authority(**told)
        asked = server.ask(request(registered(server)))
        assert isinstance(asked, Asked)
        for url in (server.allow(asked), server.deny(asked)):
            said = back(url)
            assert {key: said[key] for key in ("state", "iss") if key in said} == wanted


def test_a_person_decides_once() -> None:
    server = authority(approve="page")
    asked = server.ask(request(registered(server)))
    assert isinstance(asked, Asked)
    ticket = server.wait_for_person(asked)
    assert back(server.decide(ticket, allow=False))["error"] == "access_denied"
    for again in (ticket, "guessed"):
        with pytest.raises(ShownToPerson, match="decided already"):
            server.decide(again, allow=True)


def test_another_issuer_knows_nobody() -> None:
    server = authority()
    client, answer = signed_in(server)
    server.configure({"approve": "deny"})
    assert good(server, answer["access_token"])
    server.configure({"issuer_path": "/moved"})
    assert server.issuer == f"{ORIGIN}/moved"
    assert not good(server, answer["access_token"])
    assert refused(server, refresh(client, answer["refresh_token"])) == "invalid_client"


def test_a_setting_that_does_not_fit_is_told_and_changes_nothing() -> None:
    server = authority(access_seconds=5)
    for told, sentence in (
        ({"approve": "maybe"}, "approve is 'maybe'; write auto, page, deny"),
        ({"lies": ["all"]}, "there is no lie 'all'; the lies are issuer"),
        ({"faults": [{"kind": "slow", "endpoint": "mcp"}]}, "there is no endpoint 'mcp'"),
        ({"faults": ["fast"]}, "there is no fault 'fast' here"),
        ({"issuer_path": "tenant/"}, "write it as '/tenant'"),
        ({"discovery": "none", "own_port": True}, "remove own_port"),
        ({"acces_seconds": 1}, "unknown field"),
    ):
        with pytest.raises(msgspec.ValidationError, match=sentence):
            server.configure(told)
    assert server.told.access_seconds == 5


def test_resources_are_the_same_by_what_they_name() -> None:
    assert same("HTTP://127.0.0.1:1/mcp/", "http://127.0.0.1:1/mcp")
    assert not same("http://127.0.0.1:1/mcp", "http://127.0.0.1:1/MCP")
    assert not same("http://127.0.0.1:1/mcp", "http://localhost:1/mcp")
