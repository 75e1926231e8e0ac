"""What one server has granted, as it is stored (pure)."""

import msgspec

from mcpzip.model.principal import PrincipalId
from mcpzip.model.redaction import register


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was granted for one server, by whom, and to which client of theirs.

    url: of the server, as in the config. person: whose it is, None for whoever uses this machine. resource:
    what the tokens are good for (RFC 8707), "" before there are any. issuer: of the authorization server (RFC
    8414), "" where it has no metadata.
    client: our registration with it, as it answered (RFC 7591), without our own additions.
    access_token, refresh_token: "" where there is none. scope: what was granted. expires_at: of the access
    token, Unix s; None when nobody said. obtained_at: Unix s. signed_in_at: when somebody signed in, Unix s,
    0 if that was before it was noted; a new token changes nothing of it.
    server_metadata, resource_metadata: as fetched (RFC 8414, RFC 9728).
    wanted_scope: what a call lacked (RFC 6750, "insufficient_scope"), for the next time a person signs in.
    refused: why no token was to be had, "" while all is well: for good, or, with ``retry_at``, for now.
    failures, retry_at: how often in a row no token was to be had for a passing reason, and when that may be
    tried again (Unix s), by whichever process.
    source: whose store it was taken from, "" for what we were granted ourselves.
    """

    url: str
    resource: str = ""
    issuer: str = ""
    client: dict[str, object] = {}
    access_token: str = ""
    refresh_token: str = ""
    token_type: str = "Bearer"
    scope: str = ""
    expires_at: float | None = None
    obtained_at: float = 0.0
    server_metadata: dict[str, object] | None = None
    resource_metadata: dict[str, object] | None = None
    wanted_scope: str = ""
    refused: str = ""
    failures: int = 0
    retry_at: float = 0.0
    source: str = ""
    person: PrincipalId | None = None
    signed_in_at: float = 0.0

    def __post_init__(self) -> None:
        for secret in self.secrets:
            register(secret, passing=True)

    def expired(self, now: float) -> bool:
        """Whether the access token is known to be expired at ``now`` (Unix s)."""
        return self.expires_at is not None and now >= self.expires_at

    @property
    def ended(self) -> bool:
        """Whether a person has to sign in again."""
        return bool(self.refused) and not self.retry_at

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every text in it that nobody else may see."""
        known = (self.access_token, self.refresh_token, *map(self.client.get, _SECRETS))
        return tuple(text for text in known if isinstance(text, str) and text)

    def __repr__(self) -> str:
        return f"Grant({self.url!r})"


_SECRETS = ("client_secret", "registration_access_token")
"""What is secret of a registration (RFC 7591, RFC 7592)."""
