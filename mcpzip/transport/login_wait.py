"""Waiting for a person to sign in to a server.

The rule: no connection is made to a server that needs one before somebody has signed in; whoever calls is
told at once.
"""

import asyncio
from collections.abc import Callable

from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.model.errors import LoginNeededError

LOOK_AGAIN = 1.0
"""Seconds after which it is looked again: it is another process in which they sign in."""


class LoginWait:
    """What one server's callers are told while a person has to sign in.

    error: that; None while nobody is waited for.
    """

    def __init__(self, server: ServerConfig, sign_ins: SignIns | None, signed_in: Callable[[], None]) -> None:
        """signed_in: is called when somebody has signed in that was waited for."""
        self.error: LoginNeededError | None = None
        self._server, self._sign_ins, self._signed_in = server, sign_ins, signed_in
        self._stored: object = None
        self._looking: asyncio.Task[None] | None = None

    def begin(self, error: LoginNeededError) -> None:
        """The server refused a request, and a person can help."""
        if self._sign_ins is None:
            return
        self.error, self._stored = error, self._sign_ins.seen(self._server)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name=f"login-{self._server.name}")

    def end(self) -> None:
        """Nobody is waited for any more."""
        self.error = None
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    @property
    def over(self) -> bool:
        """Whether somebody has signed in, or out, since it began."""
        return self.error is not None and self.stored != self._stored

    @property
    def stored(self) -> object:
        """Differs when somebody has signed in, or out."""
        return None if self._sign_ins is None else self._sign_ins.signature(self._server)

    async def _look(self) -> None:
        while not self.over:  # noqa: ASYNC110 - nobody in this process knows
            await asyncio.sleep(LOOK_AGAIN)
        self.error = self._looking = None
        self._signed_in()
