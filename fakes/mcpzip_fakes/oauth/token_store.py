"""The issued codes and tokens (no I/O).

The rules: a code works once, and its reuse revokes its tokens; so does the reuse of a rotated refresh token
(RFC 9700, section 4.14.2). All tokens of one sign-in are a family, which is revoked as a whole. Times are
Unix seconds of the clock that is passed in.
"""

import secrets
from collections.abc import Callable

from msgspec import Struct

from mcpzip_fakes.oauth.errors import Refused


class Token(Struct):
    """An access or refresh token. id: a name that is no secret. ended: why it was revoked, "" if it wasn't
    (expiry doesn't set it). resource: "" for any."""

    id: str
    kind: str
    value: str
    client: str
    scope: tuple[str, ...]
    resource: str
    family: int
    expires: float | None
    ended: str = ""


class Code(Struct):
    """An authorization code and its request. challenge: PKCE's, S256."""

    value: str
    client: str
    redirect_uri: str
    challenge: str
    scope: tuple[str, ...]
    resource: str
    expires: float
    family: int
    used: bool = False


class Ledger:
    """All codes and tokens of one issuer. now: the clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._families = 0
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Token] = {}

    def family(self) -> int:
        """A new family."""
        self._families += 1
        return self._families

    def code(
        self,
        client: str,
        redirect_uri: str,
        challenge: str,
        scope: tuple[str, ...],
        resource: str,
        seconds: float,
    ) -> Code:
        """A new code."""
        value = f"code-{len(self.codes) + 1}-{secrets.token_urlsafe(24)}"
        expires = self._now() + seconds
        made = Code(value, client, redirect_uri, challenge, scope, resource, expires, self.family())
        self.codes[value] = made
        return made

    def redeem(self, value: str, client: str) -> Code:
        """The code, marked as used. Raises Refused."""
        found = self.codes.get(value)
        if found is None or found.client != client:
            raise Refused("invalid_grant", "there is no such code for this client")
        if found.used:
            self.end(found.family, "its code was used twice")
            raise Refused("invalid_grant", "the code was used before; what it brought is revoked")
        found.used = True
        if found.expires <= self._now():
            raise Refused("invalid_grant", "the code has expired")
        return found

    def issue(
        self,
        kind: str,
        client: str,
        scope: tuple[str, ...],
        resource: str,
        family: int,
        seconds: float | None,
        made_of: Callable[[Token], str] | None = None,
    ) -> Token:
        """A new token; ``seconds``: until it expires, None: never. made_of: makes its value; None for a
        random one.
        """
        number = 1 + sum(token.kind == kind for token in self.tokens.values())
        id = f"{kind}-{number}"
        expires = None if seconds is None else self._now() + seconds
        value = f"{id}-{secrets.token_urlsafe(24)}"
        made = Token(id, kind, value, client, scope, resource, family, expires)
        if made_of is not None:
            made.value = made_of(made)
        self.tokens[made.value] = made
        return made

    def refreshing(self, value: str, client: str) -> Token:
        """The refresh token, which is valid. Raises Refused."""
        found = self.tokens.get(value)
        if found is None or found.kind != "refresh" or found.client != client:
            raise Refused("invalid_grant", "there is no such refresh token for this client")
        if found.ended == "rotated":
            self.end(found.family, "a rotated refresh token was used again")
            raise Refused("invalid_grant", "the refresh token was used before; all of its family are revoked")
        if wrong := self.wrong(found):
            raise Refused("invalid_grant", f"the refresh token is of no more use: {wrong}")
        return found

    def wrong(self, token: Token) -> str:
        """Why ``token`` is not valid now, "" if it is."""
        if token.ended:
            return token.ended
        return "expired" if token.expires is not None and token.expires <= self._now() else ""

    def end(self, family: int, why: str) -> None:
        """Revoke every token of a family."""
        for token in self.tokens.values():
            if token.family == family and token.ended in ("", "rotated"):
                token.ended = why

    def good(self, kind: str) -> list[Token]:
        """The valid tokens of a kind."""
        return [token for token in self.tokens.values() if token.kind == kind and not self.wrong(token)]
