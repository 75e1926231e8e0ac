"""How each server over HTTP is signed in to, for people and for programs (pure).

The rule: what is kept is judged without asking anybody, and no part of it that is a secret is repeated; of an
address, only what leads to the server.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

from mcpzip.auth.grant import Grant
from mcpzip.config.schema import ServerConfig
from mcpzip.model.principal import PrincipalId

State = Literal[
    "signed in",
    "needs login",
    "failing",
    "credentials",
    "header",
    "headers command",
    "off",
    "not signed in",
    "unknown",
    "not in this config",
    "each person",
]
"""each person: people sign in to it, and who uses this machine has not. credentials: it signs in with its own
when it is first asked to. header, headers command, off: OAuth has no part in it. not signed in: it listed its
tools all the same, when it was last asked. failing: no token is to be had for now, and no person can help.
"""

Listing = Literal["done", "refused", "never"]
"""What came of asking a server for its tools last: "refused" where it asked for a login."""


@dataclass(frozen=True, slots=True)
class AuthStatus:
    """One server.

    issuer: who granted, "" where that isn't known. scope: what was granted. expires_at: of the access token,
    Unix s. expires_in: s, negative when it has; both None where nobody said. refreshable: whether it is
    renewed without a person. source: from whose store it was taken, "" for ours. reason: what is wrong, as a
    part of a sentence, or "". command: what a person can do about it, or None. people: who is signed in to it
    for themselves, by issuer and subject.
    """

    name: str
    transport: str
    state: State
    disabled: bool = False
    issuer: str = ""
    scope: str = ""
    expires_at: float | None = None
    expires_in: float | None = None
    refreshable: bool = False
    source: str = ""
    reason: str = ""
    command: str | None = None
    people: tuple[PrincipalId, ...] = ()

    @property
    def wrong(self) -> bool:
        """Whether somebody has to do something before it can be used."""
        return self.state in ("needs login", "failing") and not self.disabled

    def as_json(self) -> dict[str, object]:
        """For programs."""
        people = [{"issuer": issuer, "subject": subject} for issuer, subject in self.people]
        return {**asdict(self), "people": people}


def status_of(
    server: ServerConfig, grant: Grant | None, listing: Listing, now: float, command: str
) -> AuthStatus:
    """How ``server`` is signed in to at ``now`` (Unix s). command: with which a person signs in to it."""
    client_credentials = server.auth is not None and server.auth.grant == "client_credentials"
    state, reason = _state(server, grant, listing, now, client_credentials)
    kept = grant if server.auth is not None and not server.headers_command else None
    if state == "signed in" and kept is not None and kept.wanted_scope:
        reason = f"a call lacked a scope; the next login asks for {kept.wanted_scope}"
    asked = state == "needs login" or (state == "signed in" and bool(reason))
    known = AuthStatus(
        name=server.name,
        transport=server.transport,
        state=state,
        disabled=server.disabled,
        reason=reason,
        command=command if asked else None,
    )
    return known if kept is None else _granted(known, kept, now, client_credentials)


def with_people(known: AuthStatus, people: Iterable[PrincipalId], *, signs_in_itself: bool) -> AuthStatus:
    """``known`` with those who are signed in for themselves. signs_in_itself: whether mcpzip has to be signed
    in, too; else each person is.
    """
    if not signs_in_itself and known.state in ("needs login", "not signed in", "unknown"):
        known = replace(known, state="each person", reason="", command=None)
    return replace(known, people=tuple(sorted(people)))


def left_over(grant: Grant, now: float, command: str, people: Iterable[PrincipalId] = ()) -> AuthStatus:
    """What is kept for no server of this config. command: removes it. people: whose it is, too."""
    known = AuthStatus(
        name=address(grant.url),
        transport="http",
        state="not in this config",
        reason="another config beside this one may use it",
        command=command,
        people=tuple(sorted(people)),
    )
    return _granted(known, grant, now, client_credentials=False)


def address(url: str) -> str:
    """``url`` without what may be a secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _state(
    server: ServerConfig, grant: Grant | None, listing: Listing, now: float, client_credentials: bool
) -> tuple[State, str]:
    if server.headers_command:
        return "headers command", ""
    if server.auth is None:
        signed = any(name.lower() == "authorization" for name in server.headers)
        return ("header" if signed else "off"), ""
    if grant is not None and grant.refused and (client_credentials or not grant.ended):
        return "failing", grant.refused
    if grant is not None and grant.ended:
        return "needs login", grant.refused
    if grant is not None and grant.access_token:
        if grant.expired(now) and not grant.refresh_token and not client_credentials:
            return "needs login", "the access token has expired, and there is no refresh token"
        return "signed in", ""
    if grant is not None and grant.refresh_token:
        return "signed in", ""
    if client_credentials:
        return "credentials", ""
    if listing == "refused":
        return "needs login", "nobody has signed in"
    return ("not signed in", "") if listing == "done" else ("unknown", "")


def _granted(known: AuthStatus, grant: Grant, now: float, client_credentials: bool) -> AuthStatus:
    """``known``, with what was granted."""
    if not (grant.access_token or grant.refresh_token):
        return known
    end = grant.expires_at
    return replace(
        known,
        issuer=grant.issuer,
        scope=grant.scope,
        expires_at=end,
        expires_in=None if end is None else round(end - now, 1),
        refreshable=client_credentials or bool(grant.refresh_token),
        source=grant.source,
    )
