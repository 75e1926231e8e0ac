"""Asks an issuer about opaque access tokens (RFC 7662), and remembers its answers for a moment.

The rules: a token is known here by its hash only; an answer is used for half a minute, and never longer than
the token is valid; of several requests with the same token at once, one asks.
"""

import asyncio
import base64
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeGuard
from urllib.parse import quote_plus, urlencode

import httpx
import msgspec

from mcpzip.auth.discovery import send
from mcpzip.config.schema import IntrospectionConfig, IssuerConfig
from mcpzip.identity.claims import LEEWAY, Claims, is_for, principal_of
from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.model import limits
from mcpzip.model.errors import LoginError
from mcpzip.model.principal import Principal

REMEMBERED = 30.0
"""Seconds for which an answer is used: for so long a token that was revoked may still be good."""
ANSWER_TIME = 10.0
"""Seconds that the issuer has to answer."""


class _Answer(msgspec.Struct, frozen=True):
    """until: the wall clock's Unix seconds up to which it is used. problem: why the token is not valid, ""
    if it is.
    """

    until: float
    principal: Principal | None
    problem: str = ""


class Introspector:
    """Everything runs on one event loop."""

    def __init__(
        self,
        issuer: IssuerConfig,
        config: IntrospectionConfig,
        audience: str,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """audience: the configured public URL, without a slash at its end."""
        self._issuer, self._config, self._audience = issuer, config, audience
        self._environment = environment
        self._answers: OrderedDict[bytes, _Answer] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[_Answer]] = {}

    def known(self, token: str) -> Principal | None:
        """Who has ``token``, if that is remembered; else None. Raises TokenError."""
        found = self._answers.get(_hash(token))
        return None if found is None or found.until <= time.time() else _principal(found)

    async def ask(self, token: str) -> Principal:
        """Who has ``token``. Raises TokenError, IssuerUnavailableError."""
        key = _hash(token)
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._asked(key, token), name="introspect")
            task.add_done_callback(lambda done: self._done(key, done))
        found = _principal(await asyncio.shield(task))
        assert found is not None, "a valid token has a principal"
        return found

    async def close(self) -> None:
        """Ends what is under way."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    def _done(self, key: bytes, task: "asyncio.Task[_Answer]") -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waited for it got it

    async def _asked(self, key: bytes, token: str) -> _Answer:
        claims, now = await self._claims(token), time.time()
        until = now + REMEMBERED
        try:
            principal = self._checked(claims, now)
            expiry = claims.get("exp")
            if _is_number(expiry):
                until = min(until, expiry + LEEWAY)
            answer = _Answer(until, principal)
        except TokenError as error:
            answer = _Answer(until, None, str(error))
        self._answers[key] = answer
        self._answers.move_to_end(key)
        while len(self._answers) > limits.INTROSPECTED:
            self._answers.popitem(last=False)
        return answer

    def _checked(self, claims: Claims, now: float) -> Principal:
        if claims.get("active") is not True:
            raise TokenError("its issuer says that it is not active")
        if claims.get("iss") not in (None, self._issuer.issuer):
            raise TokenError("it is of another issuer (iss)")
        begins, ends = claims.get("nbf", 0), claims.get("exp", now)
        if not (_is_number(begins) and _is_number(ends)) or ends + LEEWAY <= now or begins - LEEWAY > now:
            raise TokenError("it has expired, or is not valid yet")
        if not is_for(claims, self._audience):
            raise TokenError("it is for another resource (aud)")
        return principal_of(claims, self._issuer)

    async def _claims(self, token: str) -> Claims:
        config = self._config
        # The id and the secret are encoded as a form has them first (RFC 6749, 2.3.1).
        user = ":".join(map(quote_plus, (config.client_id, config.client_secret.reveal())))
        request = httpx.Request(
            "POST",
            config.endpoint,
            headers={
                "accept": "application/json",
                "content-type": "application/x-www-form-urlencoded",
                "authorization": f"Basic {base64.b64encode(user.encode()).decode()}",
            },
            content=urlencode({"token": token, "token_type_hint": "access_token"}).encode(),
        )
        try:
            async with asyncio.timeout(ANSWER_TIME):
                response = await send(request, (self._issuer.issuer, config.endpoint), self._environment)
        except TimeoutError:
            raise IssuerUnavailableError(f"it has not answered within {ANSWER_TIME:g} s") from None
        except (LoginError, httpx.HTTPError, OSError, ValueError) as error:
            raise IssuerUnavailableError(str(error) or type(error).__name__) from error
        try:
            claims = msgspec.json.decode(response.content) if response.status_code == 200 else None
        except (ValueError, RecursionError):
            claims = None
        if not isinstance(claims, dict):
            raise IssuerUnavailableError(
                f"it answers HTTP {response.status_code} to a question about a token"
            )
        return claims


def _principal(answer: _Answer) -> Principal | None:
    if answer.problem:
        raise TokenError(answer.problem)
    return answer.principal


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
