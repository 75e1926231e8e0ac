"""Tells the open pages of each person what changes in what they see.

The rule: what others do can't be told from it. So what is compared is what the person's own pages show, at
times that have nothing to do with anybody else.
"""

from mcpzip.model.principal import PrincipalId
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.http.response import HttpResponse
from mcpzip.ui.changes import INTERVAL, Changes, stream_budget
from mcpzip.ui.seen import Seen
from mcpzip.ui.team.limits import STREAMS, STREAMS_OF_PERSON
from mcpzip.ui.team.sessions import PersonSession, Sessions


class Streams:
    """Those of all people."""

    def __init__(self, proxy: Proxy, sessions: Sessions, interval: float = INTERVAL) -> None:
        """interval: seconds between two looks at what a person sees."""
        self._proxy, self._sessions, self._interval = proxy, sessions, interval
        self._budget = stream_budget()
        self._of: dict[PrincipalId, Changes] = {}

    def tell(self, session: PersonSession, response: HttpResponse) -> bool:
        """Sends ``response`` an event for each change that this person sees. Returns False if there are too
        many streams.
        """
        person = session.principal.id
        changes = self._of.get(person)
        if changes is None:
            changes = self._of[person] = Changes(lambda: self._look(person), self._budget, self._interval)
        if len(changes) >= STREAMS_OF_PERSON or sum(map(len, self._of.values())) >= STREAMS:
            self._forget(person)
            return False
        changes.tell(response, lambda: self._sessions.is_current(session))
        ended = response.on_end

        def end() -> None:
            ended()
            self._forget(person)

        response.on_end = end
        return True

    def _forget(self, person: PrincipalId) -> None:
        if not self._of.get(person):
            self._of.pop(person, None)

    async def _look(self, person: PrincipalId) -> object:
        principal = self._sessions.principal_of(person)
        if principal is None:  # nobody of this name is signed in any more
            return None
        seen = Seen(self._proxy, principal)
        own = (one.change for one in self._proxy.tool_caller.calls if one.caller.person == person)
        return principal, seen.status(), seen.catalog, max(own, default=0)

    async def close(self) -> None:
        """Ends all."""
        for changes in list(self._of.values()):
            await changes.close()
