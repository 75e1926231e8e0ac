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

from mcpzip.auth.loopback_login import LoopbackLogin
from mcpzip.system.browser import open_browser, why_no_browser
from mcpzip.system.terminal import LineInput, is_interactive, long_lines
from mcpzip.system.threads import in_thread


class InteractiveLogin(LoopbackLogin):
    """One login to ``server``.

    tell: shows a line. browser: whether to open one. timeout: seconds they have. port, rather: see
    `LoopbackLogin`. stdin: what they type on.
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
        more_time = "; --timeout gives more time"
        super().__init__(server, tell, timeout=timeout, port=port, rather=rather, more_time=more_time)
        self._browser, self._stdin = browser, stdin
        self._background: list[asyncio.Task[None]] = []
        self._terminal = ExitStack()
        self.asked = False
        """Whether a URL was shown."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for task in self._background:
                task.cancel()
            await super().__aexit__(kind, error, trace)
        finally:
            self._terminal.close()

    async def show(self, url: str) -> None:
        """Sends them to ``url``, and begins to wait for the answer. Raises LoginError."""
        url = self.expect(url)
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

    async def _open(self, url: str) -> None:
        environ = dict(os.environ)
        if not await in_thread(lambda: open_browser(url, environ), "mcpzip-browser"):
            self._tell("No browser could be opened: open the page above yourself.")

    async def _listen(self) -> None:
        lines = LineInput(self._stdin)
        while (line := await in_thread(lines.next, "mcpzip-terminal")) is not None:
            if line.strip():
                self._at_callback.paste(line)
