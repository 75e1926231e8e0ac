"""Who may see the page: the token of this run, and the browsers that have shown it (pure).

The rules:

1. The token stands in the fragment of the URL, which a browser sends to nobody. Whoever posts it gets a
   session: a cookie that no script can read, and that no request from another site carries.
2. A request that changes anything has to repeat the session's form token, which only the page itself knows.
3. All pages are under a path that is random, and that only who is signed in learns. Browsers send a cookie of
   127.0.0.1 to every port there, so to servers of other users too, but only under its path.
4. Secrets are compared in constant time, and none is ever logged.
"""

import hmac
from secrets import token_urlsafe

import msgspec

from mcpzip.ui.limits import BROWSER_SESSIONS

_BYTES, _ROOT_BYTES = 32, 16


class BrowserSession(msgspec.Struct, frozen=True):
    """A browser that is signed in. secret: the value of its cookie. form_token: what its forms repeat. name:
    whose it is, "" for whoever runs `mcpzip ui`.
    """

    secret: str
    form_token: str
    name: str = ""

    def allows(self, form_token: str) -> bool:
        """Whether a form with this token is one of ours."""
        return hmac.compare_digest(self.form_token.encode(), form_token.encode("utf-8", "replace"))


class SignIn:
    """The sign-ins of one run. token: what opens the page. root: the path under which the pages are."""

    def __init__(self) -> None:
        self.token = token_urlsafe(_BYTES)
        self.root = f"/{token_urlsafe(_ROOT_BYTES)}"
        self._sessions: dict[str, BrowserSession] = {}

    def exchange(self, token: str) -> BrowserSession | None:
        """A new session for who knows ``token``; None for anybody else. The oldest makes room."""
        if not hmac.compare_digest(self.token.encode(), token.encode("utf-8", "replace")):
            return None
        session = BrowserSession(token_urlsafe(_BYTES), token_urlsafe(_BYTES))
        if len(self._sessions) >= BROWSER_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session.secret] = session
        return session

    def session_of(self, cookies: str | None, name: str) -> BrowserSession | None:
        """The session of a request with these ``Cookie``s, of which ours is called ``name``."""
        for pair in (cookies or "").split(";"):
            key, _, value = pair.strip().partition("=")
            if key == name:
                given = value.encode("utf-8", "replace")
                for secret, session in self._sessions.items():
                    if hmac.compare_digest(secret.encode(), given):
                        return session
        return None

    def end(self, session: BrowserSession) -> None:
        """Signs a browser out."""
        self._sessions.pop(session.secret, None)


def cookie_name(port: int) -> str:
    """Cookies don't tell ports apart, so the name does."""
    return f"mcpzip-ui-{port}"


def cookie(port: int, value: str, root: str) -> bytes:
    """The header ``Set-Cookie`` for a session; "" ends it. It has no ``Secure``: loopback has no TLS."""
    ends = "" if value else "; Max-Age=0"
    return f"{cookie_name(port)}={value}; Path={root}/; HttpOnly; SameSite=Strict{ends}".encode()
