"""The page as a client of its issuer: which answers end a sign-in, and what is never redacted."""

import helpers.respx_connections  # noqa: F401 - respx stands in for its servers
import httpx
import pytest
import respx

from mcpzip.auth.authorization_request import new_proof
from mcpzip.auth.authorization_response import AuthorizationCode
from mcpzip.config.schema import PageConfig
from mcpzip.identity.code_flow import METADATA_KEPT, CodeFlow
from mcpzip.identity.errors import IssuerUnavailableError
from mcpzip.model.errors import LoginError
from mcpzip.model.redaction import redact

ISSUER = "https://login.example.org"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "code_challenge_methods_supported": ["S256"],
}
TOKEN = {"access_token": "the-access-token", "token_type": "Bearer", "refresh_token": "the-refresh-token"}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Place:
    def __init__(self, mock: respx.MockRouter) -> None:
        self.clock = Clock()
        page = PageConfig("0", issuer=ISSUER, client_id="page", scopes=("mcp",))
        self.flow = CodeFlow(page, "https://mcp.example.org/mcp", "https://t.example/cb", {}, self.clock)
        self.metadata = mock.get(f"{ISSUER}/.well-known/oauth-authorization-server")
        self.metadata.respond(json=METADATA)
        self.openid = mock.get(f"{ISSUER}/.well-known/openid-configuration")
        self.token = mock.post(f"{ISSUER}/token")
        self.token.respond(json=TOKEN)


@pytest.fixture
def place() -> Place:
    with respx.mock(using="mcpzip", assert_all_called=False) as mock:
        yield Place(mock)  # type: ignore[misc]


async def test_what_anybody_can_choose_is_not_redacted_elsewhere(place: Place) -> None:
    proof = new_proof()
    await place.flow.redeem(AuthorizationCode("DE1234567890", proof.state, None), proof)
    await place.flow.refresh("the-old-refresh-token")
    for text in ("DE1234567890", proof.verifier, proof.state, "the-access-token", "the-old-refresh-token"):
        assert redact(f"said {text}") == f"said {text}"


async def test_the_metadata_are_fetched_now_and_then(place: Place) -> None:
    for _ in range(3):
        await place.flow.refresh("r")
    assert place.metadata.call_count == 1
    place.clock.now += METADATA_KEPT
    await place.flow.refresh("r")
    assert place.metadata.call_count == 2


@pytest.mark.parametrize(
    ("answer", "is_over"),
    [
        (httpx.Response(400, json={"error": "invalid_grant"}), True),
        (httpx.Response(401, json={"error": "invalid_client"}), False),
        (httpx.Response(400, json={"error": "temporarily_unavailable"}), False),
        (httpx.Response(400), False),
        (httpx.Response(404, text="<html>"), False),
        (httpx.Response(429), False),
        (httpx.Response(500, json={"error": "server_error"}), False),
        (httpx.Response(200, text="<html>"), False),
        (httpx.Response(200, json={}), False),
    ],
)
async def test_only_a_clear_no_ends_a_sign_in(place: Place, answer: httpx.Response, is_over: bool) -> None:
    place.token.return_value = answer
    with pytest.raises(LoginError if is_over else IssuerUnavailableError):
        await place.flow.refresh("r")


async def test_a_public_client_needs_pkce_and_one_with_a_secret_can_do_without(place: Place) -> None:
    place.metadata.respond(json={**METADATA, "code_challenge_methods_supported": []})
    with pytest.raises(IssuerUnavailableError, match="PKCE"):
        await place.flow.begin()


async def test_an_issuer_without_metadata_is_named(place: Place) -> None:
    place.metadata.respond(404)
    place.openid.respond(404)
    with pytest.raises(IssuerUnavailableError, match="publishes no metadata"):
        await place.flow.begin()
