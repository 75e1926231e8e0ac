"""Signing in with a person's browser, which comes back to a listener on loopback.

The rule: a URL is shown only if it is a plain web address with a state; its answer counts only with that
state, and within the time that the person has.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from mcpzip.auth.authorization_request import plain_url
from mcpzip.auth.authorization_response import AuthorizationCode, AuthorizationDenied
from mcpzip.auth.callback import Callback
from mcpzip.model.errors import LoginError


class LoopbackLogin:
    """One login to ``server``; a subclass shows the URL.

    tell: is told a sentence. timeout: seconds they have. port: where their browser comes back to, 0 for any;
    rather: which of them, where it is free. place: where it is said how the login goes. more_time: how to
    have more of it, "" for not at all.
    An async context manager: while it is open the browser can come back; left with an error, it tells the
    browser that the login failed, else that it worked.
    """

    def __init__(
        self,
        server: str,
        tell: Callable[[str], None],
        *,
        timeout: float,
        port: int = 0,
        rather: int = 0,
        place: str = "The terminal",
        more_time: str = "",
    ) -> None:
        self._server, self._tell, self._timeout = server, tell, timeout
        self._port, self._rather, self._place, self._more_time = port, rather, place, more_time
        self._callback: Callback | None = None
        self.redirect_uri = ""

    async def __aenter__(self) -> Self:
        self._callback = await Callback.listen(
            self._server, self._tell, self._port, self._rather, self._place
        )
        self.redirect_uri = self._callback.redirect_uri
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._at_callback.close(worked=error is None)

    def expect(self, url: str) -> str:
        """Begins to wait for the answer to ``url``, which is returned as it may be shown and opened. Raises
        LoginError.
        """
        url = plain_url(url, self._server)
        states = [value for name, value in parse_qsl(urlsplit(url).query) if name == "state"]
        if not states:
            raise LoginError(f"The sign-in page of {self._server} has no state, so it was not opened.")
        self._at_callback.expect(states[-1])
        return url

    async def answer(self) -> AuthorizationCode:
        """What they bring back. Raises LoginError when they don't, or the authorization server said no."""
        try:
            async with asyncio.timeout(self._timeout):
                verdict = await self._at_callback.verdict()
        except TimeoutError as error:
            why = f"Nobody signed in to {self._server} within {self._timeout:g} s"
            raise LoginError(f"{why}. Begin again{self._more_time}.") from error
        if isinstance(verdict, AuthorizationDenied):
            remedy = "Try again later." if verdict.passing else "Begin again to try once more."
            raise LoginError(f"The authorization server of {self._server} refused: {verdict.why}. {remedy}")
        return verdict

    @property
    def _at_callback(self) -> Callback:
        assert self._callback is not None, "used outside its `async with`"
        return self._callback
