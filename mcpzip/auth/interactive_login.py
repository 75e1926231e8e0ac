"""Signing in by hand: a person at this terminal, and their browser.

The rules: the URL is always shown, whole and on a line of its own, so that it can be opened in any browser on
any machine; the response may also be pasted, and is checked in the same way. The person can end the login at
any time, and it ends by itself after a timeout.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, quote, urlsplit

from mcpzip.auth.authorization_response import AuthorizationCode, AuthorizationDenied
from mcpzip.auth.callback import Callback
from mcpzip.model.errors import LoginError
from mcpzip.system.browser import open_browser, why_no_browser
from mcpzip.system.terminal import LineInput, is_interactive, long_lines
from mcpzip.system.threads import in_thread

_URL_SIGNS = "!#$%&'()*+,-./:;=?@[]_~"


class InteractiveLogin:
    """One login to ``server``.

    tell: shows a line. browser: whether to open one. timeout: seconds they have. port: where their browser
    comes back to, 0 for any; rather: which of them, where it is free. stdin: what they type on.
    An async context manager: while it is open the browser can come back; left with an error, it tells the
    browser that the login failed, else that it worked.
    """

    def __init__(
        self,
        server: str,
        tell: Callable[[str], None],
        *,
        timeout: float,
        browser: bool = True,
        port: int = 0,
        rather: int = 0,
        stdin: int = 0,
    ) -> None:
        self._server, self._tell, self._browser, self._timeout = server, tell, browser, timeout
        self._port, self._rather, self._stdin = port, rather, stdin
        self._background: list[asyncio.Task[None]] = []
        self._terminal = ExitStack()
        self._callback: Callback | None = None
        self.redirect_uri = ""
        self.asked = False
        """Whether a URL was shown."""

    async def __aenter__(self) -> Self:
        self._callback = await Callback.listen(self._server, self._tell, self._port, self._rather)
        self.redirect_uri = self._callback.redirect_uri
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for task in self._background:
                task.cancel()
            await self._at_callback.close(worked=error is None)
        finally:
            self._terminal.close()

    async def show(self, url: str) -> None:
        """Sends them to ``url``, and begins to wait for the answer. Raises LoginError."""
        url = _plain(url, self._server)
        states = [value for name, value in parse_qsl(urlsplit(url).query) if name == "state"]
        if not states:
            raise LoginError(f"The sign-in page of {self._server} has no state, so it was not opened.")
        self._at_callback.expect(states[-1])
        again, self.asked = self.asked, True
        self._tell(f"To sign in to {self._server}, open this page in a browser:\n\n{url}\n")
        why = why_no_browser(os.environ) if self._browser else "--no-browser"
        typing = is_interactive(self._stdin) or not self._browser
        if typing:
            self._tell(
                "Where the browser can't reach this machine: copy the address it ends up at "
                f"({self.redirect_uri}?…), paste it here and press Enter.\n"
            )
        if why:
            self._tell(f"No browser is opened from here ({why}).")
        else:
            self._background.append(asyncio.create_task(self._open(url)))
        if typing and not again:
            self._terminal.enter_context(long_lines(self._stdin))
            self._background.append(asyncio.create_task(self._listen()))
        self._tell(f"Waiting for you, {self._timeout:g} s at most. Ctrl-C ends it.")

    async def answer(self) -> AuthorizationCode:
        """What they bring back. Raises LoginError when they don't, or the authorization server said no."""
        try:
            async with asyncio.timeout(self._timeout):
                verdict = await self._at_callback.verdict()
        except TimeoutError as error:
            why = f"Nobody signed in to {self._server} within {self._timeout:g} s"
            raise LoginError(f"{why}. Begin again; --timeout gives more time.") from error
        if isinstance(verdict, AuthorizationDenied):
            remedy = "Try again later." if verdict.passing else "Begin again to try once more."
            raise LoginError(f"The authorization server of {self._server} refused: {verdict.why}. {remedy}")
        return verdict

    @property
    def _at_callback(self) -> Callback:
        assert self._callback is not None, "used outside its `async with`"
        return self._callback

    async def _open(self, url: str) -> None:
        environ = dict(os.environ)
        if not await in_thread(lambda: open_browser(url, environ), "mcpzip-browser"):
            self._tell("No browser could be opened: open the page above yourself.")

    async def _listen(self) -> None:
        lines = LineInput(self._stdin)
        while (line := await in_thread(lines.next, "mcpzip-terminal")) is not None:
            if line.strip():
                self._at_callback.paste(line)


def _plain(url: str, server: str) -> str:
    """``url`` as it may be shown on a terminal and given to a browser. Raises LoginError.

    A server named it: one that isn't a web page could start a program (CVE-2025-6514).
    """
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("https", "http") and parts.hostname and "@" not in parts.netloc
        url.encode()
    except ValueError:  # a bracket that is not closed, or half of a character
        plain = False
    if not plain:
        why = "is no plain web address, so it was not opened"
        raise LoginError(f"The sign-in page of {server} {why}. Tell whoever runs it.")
    return quote(url, safe=_URL_SIGNS + "%")
