"""The fake authorization server's clients: how they register, describe themselves, and show who they are."""

import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from helpers.oauth_authority import (
    CALLBACK,
    MCP,
    ORIGIN,
    authority,
    good,
    refused,
    registered,
    request,
)
from mcpzip_fakes.oauth.authority import Asked
from mcpzip_fakes.oauth.clients import JWT_BEARER, is_document
from mcpzip_fakes.oauth.errors import Refused, ShownToPerson


def test_machines_show_who_they_are() -> None:
    grants = ["client_credentials"]
    server = authority(
        clients=[{"id": "bot", "secret": "p:w", "grants": grants}, {"id": "anon", "grants": grants}]
    )
    form = {"grant_type": "client_credentials", "resource": MCP}
    basic = "Basic Ym90OnAlM0F3"  # bot:p%3Aw
    for body, header in (({}, basic), ({"client_id": "bot", "client_secret": "p:w"}, "")):
        answer = server.token({**form, **body}, header)
        assert good(server, answer["access_token"])
        assert "refresh_token" not in answer
    for body, header in (
        ({"client_id": "bot"}, ""),
        ({"client_id": "bot", "client_secret": "pw"}, ""),
        ({}, "Basic Ym90OnB3"),
        ({}, "Basic !!"),
        ({"client_id": "anon"}, basic),
    ):
        assert refused(server, {**form, **body}, header) == "invalid_client"
    assert refused(server, {**form, "client_id": "anon"}) == "unauthorized_client"
    assert refused(server, {**form, "client_secret": "p:w"}, basic) == "invalid_request"


def test_a_signed_assertion() -> None:
    key, other = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    server = authority(clients=[{"id": "bot", "key": public, "grants": ["client_credentials"]}])

    def form(signer: ed25519.Ed25519PrivateKey = key, **claims: object) -> dict[str, str]:
        told = {"iss": "bot", "sub": "bot", "aud": ORIGIN, "exp": time.time() + 60, "jti": "1", **claims}
        return {
            "grant_type": "client_credentials",
            "client_assertion_type": JWT_BEARER,
            "client_assertion": jwt.encode(told, signer, algorithm="EdDSA"),
            "resource": MCP,
        }

    assert good(server, server.token(form(), "")["access_token"])
    for wrong in (
        form(),
        form(other, jti="2"),
        form(jti="2", aud="https://other.example"),
        form(jti="2", exp=time.time() - 1),
        form(jti="2", iss="somebody"),
        {**form(jti="2"), "client_assertion_type": "urn:x"},
        {**form(jti="2"), "client_assertion": "nonsense"},
        {"grant_type": "client_credentials", "client_id": "bot", "resource": MCP},
    ):
        assert refused(server, wrong) == "invalid_client"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"redirect_uris": ["http://evil.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://127.0.0.1/cb#part"]}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": "http://127.0.0.1/cb"}, "invalid_client_metadata"),
        ({"grant_types": ["password"]}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "invalid_client_metadata"),
    ],
)
def test_a_registration_is_looked_at(asked: dict[str, object], error: str) -> None:
    with pytest.raises(Refused) as wrong:
        registered(authority(), **asked)
    assert wrong.value.code == error


def test_a_registration_says_what_it_is() -> None:
    server = authority()
    said = server.clients.register({"redirect_uris": ["https://app.example/cb"], "client_name": "n"})
    assert (said["client_name"], said["token_endpoint_auth_method"]) == ("n", "client_secret_basic")
    assert said["client_secret"]
    assigned = authority(registration_method="client_secret_post")
    told = assigned.clients.register({"redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none"})
    assert told["token_endpoint_auth_method"] == "client_secret_post"
    server.clients.forget()
    with pytest.raises(ShownToPerson):
        server.ask(request(str(said["client_id"])))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"client_id": "https://other.example/mcp.json"}, "not its own URL"),
        ({"redirect_uris": []}, "no redirect_uris"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "no secret"),
        ({"client_secret": "x"}, "no secret"),
    ],
)
def test_a_document_is_looked_at(changed: dict[str, object], sentence: str) -> None:
    url = "https://client.example/mcp.json"
    document = {"client_id": url, "redirect_uris": [CALLBACK]}
    right = authority(cimd=True, documents={url: document})
    assert isinstance(right.ask(request(url)), Asked)
    assert isinstance(authority(documents={url: document}).clients.get(url), type(None))
    wrong = authority(cimd=True, documents={url: {**document, **changed}})
    with pytest.raises(ShownToPerson, match=sentence):
        wrong.ask(request(url))


def test_what_may_be_a_document() -> None:
    assert [
        is_document(url)
        for url in (
            "https://a.example/c",
            "http://127.0.0.1:1/c",
            "http://a.example/c",
            "https://a.example/",
            "client-1",
        )
    ] == [True, True, False, False, False]


def test_the_port_of_a_loopback_redirect_may_differ_unless_told() -> None:
    other = {"redirect_uri": "http://127.0.0.1:8888/callback"}
    server = authority()
    assert isinstance(server.ask(request(registered(server), **other)), Asked)
    strict = authority(exact_ports=True)
    with pytest.raises(ShownToPerson):
        strict.ask(request(registered(strict), **other))
