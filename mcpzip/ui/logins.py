"""Sign-ins to servers that were begun on the page.

The rules:

1. One at a time for a server, and `LOGINS` of all; each within its time. All end with the command.
2. The page of the authorization server is a link that a person follows; nothing opens it by itself. The
   browser comes back to a listener of the login's own (`auth.callback`), not to the page.
3. How a login ended is known until the next one begins.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from mcpzip.auth.beginning import login_lock, signed_in_server
from mcpzip.auth.loopback_login import LoopbackLogin
from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import Config, ServerConfig
from mcpzip.model.errors import LoginError, McpzipError
from mcpzip.system.threads import in_thread
from mcpzip.ui.limits import LOGIN_BEGIN, LOGIN_TIME, LOGINS, LOGINS_KEPT
from mcpzip.ui.rendering import ShownText

State = Literal["begun", "waiting", "done", "failed", "cancelled"]
_UNDER_WAY = ("begun", "waiting")


class LoginReport(msgspec.Struct, frozen=True):
    """A login. url: where to sign in, "" as long as that isn't known. said: what the listener has refused.
    reason: why it failed. at: when it changed last, Unix s.
    """

    server: str
    state: State
    at: float
    url: str = ""
    said: str = ""
    reason: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether it has not ended."""
        return self.state in _UNDER_WAY

    @property
    def link(self) -> ShownText:
        """``url`` whole: it consists of what a URL may have (`LoopbackLogin.expect`)."""
        return ShownText(self.url)

    @property
    def host(self) -> str:
        """Where the link leads."""
        return urlsplit(self.url).netloc


class _Login(LoopbackLogin):
    """Shows the URL on the page."""

    def __init__(self, server: str, tell: Callable[[str], None], shown: Callable[[str], None], **ports: int):
        super().__init__(
            server, tell, timeout=LOGIN_TIME, place="The page of mcpzip", more_time=" on the page", **ports
        )
        self._shown = shown

    async def show(self, url: str) -> None:
        """See `auth.token_client.Login`."""
        self._shown(self.expect(url))


class Logins:
    """The logins of one run. Belongs to one event loop."""

    def __init__(self, warn: Callable[[str], None], listed: Callable[[str], Awaitable[object]]) -> None:
        """warn: is told what is wrong with what is kept. listed: lists the tools of a server that has just
        been signed in to.
        """
        self._warn, self._listed = warn, listed
        self._reports: dict[str, LoginReport] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def report(self, server: str) -> LoginReport | None:
        """The last login to ``server``."""
        return self._reports.get(server)

    def reports(self) -> list[LoginReport]:
        """The last login to each server."""
        return list(self._reports.values())

    async def begin(self, config: Config, name: str) -> None:
        """Begins to sign in to ``name``, and waits a moment for its URL. Raises McpzipError if it is not
        signed in to, and LoginError if another login is under way, or too many are.
        """
        server = signed_in_server(config, name)
        if name in self._tasks:
            raise LoginError(f"A login to {name} is under way already.")
        if len(self._tasks) >= LOGINS:
            raise LoginError(f"{LOGINS} logins are under way. Finish one, or cancel it.")
        self._note(name, "begun")
        task = asyncio.create_task(self._run(config, server), name=f"login-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))
        with suppress(TimeoutError):
            async with asyncio.timeout(LOGIN_BEGIN):
                while self._reports[name].state == "begun":
                    self._changed.clear()
                    await self._changed.wait()

    async def cancel(self, server: str) -> None:
        """Ends the login to ``server``, if one is under way."""
        task = self._tasks.get(server)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    def forget(self, server: str) -> None:
        """Forgets how the last login to ``server`` ended."""
        if server not in self._tasks:
            self._reports.pop(server, None)

    async def close(self) -> None:
        """Ends all."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, config: Config, server: ServerConfig) -> None:
        name = server.name
        try:
            async with asyncio.timeout(2 * LOGIN_TIME):  # it also waits for the servers that it asks
                await self._sign_in(config, server)
        except asyncio.CancelledError:
            self._note(name, "cancelled")
            raise
        except TimeoutError:
            self._note(name, "failed", reason=f"It took longer than {2 * LOGIN_TIME:g} s.")
        except McpzipError as error:
            self._note(name, "failed", reason=str(error))
        except OSError as error:
            self._note(name, "failed", reason=f"{error.filename or 'It'} failed: {error.strerror or error}.")
        except Exception as error:
            self._warn(f"a login failed: {type(error).__name__}: {error}")
            self._note(name, "failed", reason=f"mcpzip failed: {type(error).__name__}.")
        else:
            self._note(name, "done")
            with suppress(McpzipError, OSError):  # the page of the server says why it is not listed
                await self._listed(name)

    async def _sign_in(self, config: Config, server: ServerConfig) -> None:
        def prepare() -> SignIns:
            import mcpzip.auth.login  # brings httpx

            assert mcpzip.auth.login
            return SignIns(config, self._warn)

        sign_ins = await in_thread(prepare, "auth")
        from mcpzip.auth.client import callback_port
        from mcpzip.auth.login import sign_in

        async with sign_ins, login_lock(sign_ins.store, server):
            store = sign_ins.store
            before = await in_thread(lambda: store.load(server.url), "auth")
            again = before is not None and bool(before.access_token)
            if server.auth is not None and server.auth.grant == "client_credentials":
                await sign_in(server, store, None, force=again)
                return
            port = server.auth.callback_port if server.auth is not None else 0
            async with _Login(
                server.name,
                lambda sentence: self._say(server.name, sentence),
                lambda url: self._note(server.name, "waiting", url=url),
                port=port,
                rather=callback_port(before),
            ) as login:
                await sign_in(server, store, login, force=again)

    def _say(self, server: str, sentence: str) -> None:
        known = self._reports[server]
        self._set(msgspec.structs.replace(known, said=sentence))

    def _note(self, server: str, state: State, *, url: str = "", reason: str = "") -> None:
        self._set(LoginReport(server, state, time.time(), url, "", reason))

    def _set(self, report: LoginReport) -> None:
        self._reports.pop(report.server, None)
        self._reports[report.server] = report
        ended = [one.server for one in self._reports.values() if not one.is_under_way]
        for server in ended[: max(0, len(ended) - LOGINS_KEPT)]:
            del self._reports[server]
        self._changed.set()
