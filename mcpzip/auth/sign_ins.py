"""The sign-ins of all servers of a config.

The rule: this is what the rest of mcpzip knows of signing in. OAuth, and httpx with it, is imported for the
first server over HTTP.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcpzip.auth.failure import AuthFailure
from mcpzip.config import Config, ServerConfig
from mcpzip.config.diff import same_connection
from mcpzip.config.paths import mcpzip_command
from mcpzip.system.tasks import retrieve_exception
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    import httpx

    from mcpzip.auth.headers import HeadersCommand
    from mcpzip.auth.oauth import OAuth
    from mcpzip.auth.store import PersonStore, Store, WholeStore
    from mcpzip.model.principal import PrincipalId


class SignIns:
    """How each server of ``config`` is signed in to."""

    def __init__(
        self,
        config: Config,
        warn: Callable[[str], None] = lambda warning: None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """warn: is told what is wrong with the store. environment: see below."""
        self._config, self._warn, self.environment = config, warn, environment
        self._store: WholeStore | None = None
        self._signers: dict[str, OAuth] = {}
        self._programs: dict[str, HeadersCommand] = {}
        self._replaced: list[OAuth] = []
        self._beginning: asyncio.Future[None] | None = None
        self._lock = threading.RLock()  # whoever has it may open the store

    def begin(self) -> None:
        """Has the sign-ins to all servers read in the background from the store that machines share. Then
        servers can be connected to while it is away.
        """

        def begin() -> None:
            for server in self._config.servers.values():
                if server.auth is not None and server.transport != "stdio":
                    self.store.signature(server.url)

        self._beginning = asyncio.ensure_future(in_thread(begin, "auth"))
        self._beginning.add_done_callback(retrieve_exception)

    @property
    def store(self) -> Store:
        """Where they are kept. Raises McpzipError when there is no such place."""
        return self.whole_store

    @property
    def whole_store(self) -> WholeStore:
        """The same, with those of all people."""
        with self._lock:
            if self._store is None:
                from mcpzip.auth.store import open_store

                self._store = open_store(self._config, self._warn)
            return self._store

    def of(self, server: ServerConfig) -> httpx.Auth | None:
        """What signs requests to ``server``, the same for all its connections. Imports httpx, so it is
        for threads. Raises McpzipError.
        """
        if server.headers_command:
            from mcpzip.auth.headers import HeadersCommand

            with self._lock:
                program = self._programs.get(server.name)
                if program is None or not same_connection(program.server, server):
                    program = self._programs[server.name] = HeadersCommand(server, self.environment)
                return program
        if server.auth is None:
            return None
        from mcpzip.auth.oauth import OAuth

        with self._lock:
            signer = self._signers.get(server.name)
            if signer is None or not same_connection(signer.server, server):  # the config was edited
                if signer is not None:
                    self._replaced.append(signer)
                signer = self._signers[server.name] = OAuth(server, self.store, environment=self.environment)
            return signer

    def failure(self, server: str) -> AuthFailure | None:
        """Why ``server`` last refused what was sent to it, as far as signing in goes."""
        signer = self._signers.get(server)
        return None if signer is None else signer.failure

    def signature(self, server: ServerConfig) -> object:
        """Differs when somebody has signed in to ``server``, or out of it."""
        return None if server.auth is None else self.store.signature(server.url)

    def seen(self, server: ServerConfig) -> object:
        """The signature as it was when ``server`` last refused what was sent to it."""
        signer = self._signers.get(server.name)
        if signer is None:
            return self.signature(server)
        # Without a failure somebody has signed in since: no signature is like that.
        return object() if signer.failure is None else signer.failure.seen

    def command(self, server: str) -> str:
        """The command with which a person signs in to ``server``."""
        return mcpzip_command(self._config.path, "auth", "login", server)

    async def close(self) -> None:
        """Waits a moment for tokens that are being had."""
        if self._beginning is not None:
            await asyncio.wait([self._beginning])
        for signer in (*self._signers.values(), *self._replaced):
            await signer.close()
        if self._store is not None:
            await in_thread(self._store.close, "auth")

    async def __aenter__(self) -> SignIns:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class PersonSignIns(SignIns):
    """How one person is signed in to servers. No token of anybody else is used, and theirs by nobody else."""

    def __init__(self, everybody: SignIns, person: PrincipalId, page: Callable[[], str]) -> None:
        """everybody: whose store it is in. page: the URL of the page on which the person signs in."""
        super().__init__(everybody._config, everybody._warn, everybody.environment)
        self._everybody, self._person, self._page = everybody, person, page
        self._own: PersonStore | None = None

    @property
    def store(self) -> Store:
        if self._own is None:
            from mcpzip.auth.store import PersonStore

            self._own = PersonStore(self._everybody.whole_store, self._person)
        return self._own

    def failure(self, server: str) -> AuthFailure | None:
        found = super().failure(server)  # whose remedy is for whoever can edit the config
        return None if found is None else replace(found, remedy="")

    def command(self, server: str) -> str:
        return self._page()
