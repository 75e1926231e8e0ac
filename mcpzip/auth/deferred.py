"""OAuth that is loaded when a server first needs it.

The rule: to load it takes half a second and 30 MB. A server that nobody signed in to is asked without, and
only its refusal (401, 403) has OAuth loaded, which then goes on from that refusal.
"""

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

import httpx

from mcpzip.auth.trouble import REFUSALS
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.auth.flow import OAuth


class DeferredOAuth(httpx.Auth):
    """Signs requests as `OAuth` does."""

    def __init__(self, load: "Callable[[], OAuth]", known: Callable[[], bool]) -> None:
        """load: gives it, in any thread. known: whether there may be a sign-in."""
        self._load, self._known = load, known
        self._oauth: OAuth | None = None

    @classmethod
    def loaded(cls, oauth: "OAuth") -> "DeferredOAuth":
        """The same where it was loaded before."""
        made = cls(lambda: oauth, lambda: True)
        made._oauth = oauth
        return made

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """As `httpx.Auth` has it. Raises McpzipError."""
        refusal: httpx.Response | None = None
        if self._oauth is None:
            if not self._known():
                refusal = yield request
                if refusal.status_code not in REFUSALS:
                    return
            self._oauth = await in_thread(self._load, "import-sdk")
        flow = self._oauth.flow(request)
        try:
            outgoing = await flow.__anext__()
            if refusal is not None and "authorization" not in outgoing.headers:
                outgoing = await flow.asend(refusal)  # it was sent so, and that was refused
            while True:
                outgoing = await flow.asend((yield outgoing))
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()
