"""Tells the open pages of each browser what changes in what its person sees.

The rules:

1. What others do can't be told from it. So what is compared is what the person's own pages show, at times
   that have nothing to do with anybody else.
2. Each look is one for which the sign-in is checked, as for a page. With the sign-in the stream ends.
"""

from mcpzip.identity.errors import IssuerUnavailableError, TokenError
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.http.response import HttpResponse, Refusal
from mcpzip.ui.changes import INTERVAL, Changes, stream_budget
from mcpzip.ui.seen import Seen
from mcpzip.ui.team.issuer_session import IssuerSession
from mcpzip.ui.team.limits import STREAMS, STREAMS_OF_BROWSER
from mcpzip.ui.team.sessions import PersonSession, Sessions

_TOO_MANY = Refusal(503, "Too many tabs of this page are open.")


class Streams:
    """Those of all browsers."""

    def __init__(self, proxy: Proxy, sessions: Sessions, interval: float = INTERVAL) -> None:
        """interval: seconds between two looks at what a person sees."""
        self._proxy, self._sessions, self._interval = proxy, sessions, interval
        self._budget = stream_budget()
        self._of: dict[str, Changes] = {}

    def tell(self, session: PersonSession, response: HttpResponse) -> None:
        """Sends ``response`` an event for each change that the person of ``session`` sees, or refuses if
        there are too many streams.
        """
        secret = session.secret
        of_browser = self._of.get(secret, ())
        if len(of_browser) >= STREAMS_OF_BROWSER or sum(map(len, self._of.values())) >= STREAMS:
            response.refuse(_TOO_MANY)
            return
        changes = self._of.get(secret)
        if changes is None:
            changes = Changes(lambda: self._look(secret), self._budget, self._interval)
            self._of[secret] = changes
        changes.tell(response, lambda: self._sessions.current(secret) is not None)
        ended = response.on_end

        def end() -> None:
            ended()
            if not changes:
                self._of.pop(secret, None)

        response.on_end = end

    async def _look(self, secret: str) -> object:
        session = self._sessions.current(secret)
        if session is None:
            return None
        principal = session.principal
        if isinstance(session.credential, IssuerSession):
            try:
                principal = await session.credential.check()
            except TokenError:
                self._sessions.end(session)
                return None
            except IssuerUnavailableError:  # it is what it was
                pass
        seen = Seen(self._proxy, principal)
        calls = self._proxy.tool_caller.calls
        own = (one.change for one in calls if one.caller.person == principal.id)
        return principal, seen.status(), seen.catalog, max(own, default=0)

    async def close(self) -> None:
        """Ends all."""
        for changes in list(self._of.values()):
            await changes.close()
