"""Which browsers are signed in, and whose they are (pure, but for the file of keys).

The rules:

1. A sign-in makes a new session, whatever cookie came with it: nobody can choose the session of another.
2. A session is of one API key, or of one sign-in at the issuer. It ends when the key is removed or expires,
   or the issuer's tokens do (`IssuerSession`), after `IDLE` seconds without a request, after `LONGEST` in any
   case, and when the person signs out. The key itself is not remembered.
3. The groups of a person are those that their key or token has now, not those of the sign-in.
"""

import hashlib
from collections.abc import Callable
from secrets import token_urlsafe

from msgspec.structs import replace

from mcpzip.identity.api_keys import ApiKey, ApiKeys, principal_of
from mcpzip.identity.errors import TokenError
from mcpzip.model.principal import Principal
from mcpzip.ui.sign_in import BrowserSession
from mcpzip.ui.team.issuer_session import IssuerSession
from mcpzip.ui.team.limits import IDLE, LONGEST, SESSIONS, SESSIONS_OF_PERSON

_BYTES = 32


class PersonSession(BrowserSession, frozen=True):
    """A browser of ``principal``. credential: what it signed in with. began: see the clock of `Sessions`."""

    principal: Principal = Principal("", "")
    credential: ApiKey | IssuerSession | None = None
    began: float = 0.0

    def of(self, principal: Principal) -> "PersonSession":
        """The same of the same person, of whom something else is known now."""
        return replace(self, principal=principal, name=principal.name)


class Sessions:
    """The sessions of all people. Belongs to one event loop."""

    def __init__(self, keys: ApiKeys | None, clock: Callable[[], float]) -> None:
        """keys: None if nobody signs in with one. clock: seconds."""
        self._keys, self._clock = keys, clock
        self._sessions: dict[bytes, PersonSession] = {}
        self._used: dict[bytes, float] = {}

    def begin(self, token: str) -> PersonSession:
        """A session of whoever has the API key ``token``. Raises TokenError."""
        if self._keys is None:
            raise TokenError("nobody signs in with an API key here")
        key = self._keys.find(token)
        return self._begin(principal_of(key), key)

    def begin_at_issuer(self, issuer_session: IssuerSession) -> PersonSession:
        """A session of whoever has signed in at the issuer."""
        return self._begin(issuer_session.principal, issuer_session)

    def _begin(self, principal: Principal, credential: ApiKey | IssuerSession) -> PersonSession:
        self._forget_ended()
        secret, form_token = token_urlsafe(_BYTES), token_urlsafe(_BYTES)
        made = PersonSession(secret, form_token, principal.name, principal, credential, self._clock())
        of_person = [one for one, other in self._sessions.items() if other.principal.id == principal.id]
        for digest in of_person[: max(0, len(of_person) - SESSIONS_OF_PERSON + 1)]:
            self._remove(digest)
        while len(self._sessions) >= SESSIONS:
            self._remove(next(iter(self._sessions)))
        digest = _digest(made.secret)
        self._sessions[digest], self._used[digest] = made, made.began
        return made

    def of(self, cookies: str | None, name: str, *, by_person: bool = True) -> PersonSession | None:
        """The session of a request with these ``Cookie``s, of which ours is called ``name``. by_person:
        whether a person did something, after which the session is not idle.
        """
        for pair in (cookies or "").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name and (found := self._current(_digest(value), by_person=by_person)) is not None:
                return found
        return None

    def current(self, secret: str) -> PersonSession | None:
        """The session whose cookie has this value, if it has not ended yet."""
        return self._current(_digest(secret), by_person=False)

    def end(self, session: BrowserSession) -> None:
        """Signs a browser out."""
        self._remove(_digest(session.secret))

    def _current(self, digest: bytes, *, by_person: bool) -> PersonSession | None:
        # Found by its digest: how long that takes says nothing of the secret.
        session, now = self._sessions.get(digest), self._clock()
        if session is None:
            return None
        try:
            if now >= min(self._used[digest] + IDLE, session.began + LONGEST):
                raise TokenError("it has ended")
            session = self._renewed(session)
        except TokenError:
            self._remove(digest)
            return None
        self._sessions[digest] = session
        if by_person:
            self._used[digest] = now
        return session

    def _forget_ended(self) -> None:
        """Forgets what is left of the sessions that have ended: tokens of an issuer, too."""
        for digest in list(self._sessions):
            self._current(digest, by_person=False)

    def _renewed(self, session: PersonSession) -> PersonSession:
        """Raises TokenError if its key isn't valid any more."""
        credential = session.credential
        if isinstance(credential, IssuerSession):
            return session.of(credential.principal)
        if self._keys is None or credential is None:
            raise TokenError("it has no key")
        key = self._keys.renewed(credential)
        return session if key == credential else replace(session.of(principal_of(key)), credential=key)

    def _remove(self, digest: bytes) -> None:
        self._sessions.pop(digest, None)
        self._used.pop(digest, None)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
