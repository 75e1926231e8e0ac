"""Waiting for a person to sign in to a server.

The rule: until somebody has signed in, no connection is made to a server that needs it, and every request to
it fails at once.
"""

import asyncio
from collections.abc import Callable

from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.model.errors import LoginNeededError
from mcpzip.system.event_log import note

POLL_INTERVAL = 1.0
"""Seconds between two checks of the store, because people sign in with another process."""


class LoginWait:
    """Whether one server is waiting for a person to sign in.

    error: what its requests fail with in the meantime; None when it isn't waiting.
    """

    def __init__(self, server: ServerConfig, sign_ins: SignIns | None, signed_in: Callable[[], None]) -> None:
        """signed_in: called when the wait has ended because somebody signed in."""
        self.error: LoginNeededError | None = None
        self._server, self._sign_ins, self._signed_in = server, sign_ins, signed_in
        self._signature: object = None
        self._closed = False
        self._polling: asyncio.Task[None] | None = None

    def begin(self, error: LoginNeededError) -> None:
        """Begins to wait: the server refused a request, and a person can sign in to it."""
        if self._sign_ins is None or self._closed:
            return
        if self.error is None:
            note("warning", self._server.name, "needs login", str(error))
        self.error, self._signature = error, self._sign_ins.seen(self._server)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(), name=f"login-{self._server.name}")

    def end(self) -> None:
        """Ends the wait."""
        self.error = None
        if self._polling is not None:
            self._polling.cancel()
            self._polling = None

    def close(self) -> None:
        """Ends the wait for good: the config of the server has changed."""
        self._closed = True
        self.end()

    @property
    def over(self) -> bool:
        """Whether somebody has signed in, or out, since the wait began."""
        return self.error is not None and self.grant_signature != self._signature

    @property
    def grant_signature(self) -> object:
        """A value that changes when somebody signs in to the server, or out of it."""
        return None if self._sign_ins is None else self._sign_ins.signature(self._server)

    async def _poll(self) -> None:
        while not self.over:  # noqa: ASYNC110 - no event: another process writes the store
            await asyncio.sleep(POLL_INTERVAL)
        self.error = self._polling = None
        self._signed_in()
