"""The tokens of a browser that signed in at an issuer: who refreshes them, and for whom."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mcpzip.auth.authorization_request import new_proof
from mcpzip.auth.authorization_response import AuthorizationCode
from mcpzip.auth.responses import Token
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.model.errors import LoginError
from mcpzip.model.principal import Principal
from mcpzip.ui.team.issuer_session import IssuerSession

ANN, BOB = Principal("https://i.example", "ann"), Principal("https://i.example", "bob")


class Flow:
    """A token endpoint whose refresh tokens can be used once. fails: how the next refresh ends."""

    def __init__(self) -> None:
        self.number, self.refreshed = 1, 0
        self.fails: Exception | None = None
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self.answers.set()
        self.rotates = True

    @property
    def token(self) -> Token:
        return Token(f"access-{self.number}", f"refresh-{self.number if self.rotates else 1}", 60, None)

    async def redeem(self, answer: object, proof: object) -> Token:
        return self.token

    async def refresh(self, refresh_token: str) -> Token:
        self.refreshed += 1
        self.asked.set()
        await self.answers.wait()
        if self.fails is not None:
            raise self.fails
        assert refresh_token == self.token.refresh_token, "it was used twice"
        self.number += 1
        return self.token if self.rotates else Token(self.token.access_token, "", 60, None)


class Tokens:
    """What the access tokens are: whose, by token; any other one has expired."""

    def __init__(self) -> None:
        self.whose = {"access-1": ANN}
        self.scopes: tuple[str, ...] = ()

    def check(self, token: str) -> Principal | Callable[[], Coroutine[Any, Any, Principal]]:
        if token not in self.whose:
            raise TokenError("it has expired")
        return self.whose[token]

    def required_scopes(self, principal: Principal) -> tuple[str, ...]:
        return self.scopes


class Place:
    def __init__(self) -> None:
        self.flow, self.tokens = Flow(), Tokens()

    async def begun(self) -> IssuerSession:
        return await IssuerSession.of(
            self.flow,  # type: ignore[arg-type]
            self.tokens,  # type: ignore[arg-type]
            AuthorizationCode("c", "s", None),
            new_proof(),
        )

    def expire(self, then: Principal = ANN) -> None:
        """The token expires, and the next one is of ``then``."""
        self.tokens.whose = {f"access-{self.flow.number + 1}": then}


async def test_of_several_requests_one_refreshes() -> None:
    place = Place()
    session = await place.begun()
    assert await session.check() == ANN
    place.expire()
    assert await asyncio.gather(*(session.check() for _ in range(9))) == [ANN] * 9
    assert place.flow.refreshed == 1


async def test_a_refresh_goes_on_when_its_browser_has_gone() -> None:
    place = Place()
    session = await place.begun()
    place.expire()
    place.flow.answers.clear()
    left = asyncio.ensure_future(session.check())
    await place.flow.asked.wait()
    left.cancel()
    place.flow.answers.set()
    assert await session.check() == ANN
    assert place.flow.refreshed == 1


@pytest.mark.parametrize("rotates", [True, False])
async def test_a_token_is_refreshed_again_and_again(rotates: bool) -> None:
    place = Place()
    place.flow.rotates = rotates
    session = await place.begun()
    for times in range(1, 4):
        place.expire()
        assert await session.check() == ANN
        assert place.flow.refreshed == times


async def test_what_can_not_be_refreshed_ends() -> None:
    place = Place()
    session = await place.begun()
    place.expire()
    place.flow.fails = LoginError("its token endpoint refuses (invalid_grant).")
    with pytest.raises(TokenError):
        await session.check()


async def test_an_issuer_that_is_away_takes_nothing_away() -> None:
    place = Place()
    session = await place.begun()
    place.expire()
    place.flow.fails = IssuerUnavailableError("it is away")
    with pytest.raises(IssuerUnavailableError):
        await session.check()
    place.flow.fails = None
    assert await session.check() == ANN


async def test_a_refreshed_token_of_somebody_else_is_refused() -> None:
    place = Place()
    session = await place.begun()
    place.expire(BOB)
    with pytest.raises(TokenError, match="another person"):
        await session.check()


async def test_a_token_without_a_scope_that_is_needed_is_refused() -> None:
    place = Place()
    place.tokens.scopes = ("mcp",)
    with pytest.raises(TokenError, match="lacks the scope mcp"):
        await place.begun()
