"""The sign-ins of all servers of a config.

The rule: this is what the rest of mcpzip knows of signing in; the SDK is imported when the first server needs
it, which is when somebody has signed in to it or it refuses a request.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpzip.auth.trouble import Trouble
from mcpzip.config import Config, ServerConfig, config_path

if TYPE_CHECKING:
    import httpx

    from mcpzip.auth.flow import OAuth
    from mcpzip.auth.headers import HeadersCommand
    from mcpzip.auth.store import Store


class SignIns:
    """How each server of ``config`` is signed in to."""

    def __init__(self, config: Config, warn: Callable[[str], None] = lambda warning: None) -> None:
        """warn: is told what is wrong with the store."""
        self._config, self._warn = config, warn
        self._store: Store | None = None
        self._signers: dict[str, OAuth] = {}
        self._deferred: dict[str, httpx.Auth] = {}
        self._programs: dict[str, HeadersCommand] = {}

    @property
    def store(self) -> Store:
        """Where they are kept. Raises McpzipError when there is no such place."""
        if self._store is None:
            from mcpzip.auth.store import open_store

            self._store = open_store(self._config, self._warn)
        return self._store

    def of(self, server: ServerConfig) -> httpx.Auth | None:
        """What signs requests to ``server``, the same for all its connections. Imports httpx, and reads what
        mcp-remote has kept. Raises McpzipError.
        """
        if server.headers_command:
            from mcpzip.auth.headers import HeadersCommand

            return self._programs.setdefault(server.name, HeadersCommand(server))
        if server.auth is None:
            return None
        from mcpzip.auth.deferred import DeferredOAuth

        if server.name not in self._deferred:
            auth, store, url = server.auth, self.store, server.url
            sure = auth.grant == "client_credentials" or _is_kept_elsewhere(server)
            self._deferred[server.name] = DeferredOAuth(
                lambda: self._loaded(server), lambda: sure or store.signature(url) is not None
            )
        return self._deferred[server.name]

    def _loaded(self, server: ServerConfig) -> OAuth:
        """The OAuth of ``server``. Imports the SDK."""
        with _IMPORTING:
            from mcpzip.auth.flow import OAuth

            signer = self._signers.get(server.name)
            if signer is None:
                signer = self._signers[server.name] = OAuth(server, self.store)
            return signer

    def trouble(self, server: str) -> Trouble | None:
        """Why ``server`` last refused what was sent to it, as far as signing in goes."""
        signer = self._signers.get(server)
        return None if signer is None else signer.trouble

    def signature(self, server: ServerConfig) -> object:
        """Differs when somebody has signed in to ``server``, or out of it."""
        return None if server.auth is None else self.store.signature(server.url)

    def seen(self, server: ServerConfig) -> object:
        """The signature as it was when ``server`` last refused what was sent to it."""
        signer = self._signers.get(server.name)
        if signer is None:
            return self.signature(server)
        # Without a trouble somebody has signed in since: no signature is like that.
        return object() if signer.trouble is None else signer.trouble.seen

    def command(self, server: str) -> str:
        """The command with which a person signs in to ``server``."""
        words = ["mcpzip", "auth", "login", server]
        if self._config.path != config_path(
            None, {key: os.environ[key] for key in _HOMES if key in os.environ}
        ):
            words += ["--config", self._config.path]
        return " ".join(f'"{word}"' if " " in word else word for word in words)

    async def close(self) -> None:
        """Waits a moment for tokens that are being had."""
        for signer in self._signers.values():
            await signer.close()


def _is_kept_elsewhere(server: ServerConfig) -> bool:
    """Whether mcp-remote has a sign-in to ``server`` that may be taken over."""
    if server.auth is None or not server.auth.mcp_remote:
        return False
    from mcpzip.auth import mcp_remote

    return mcp_remote.read(server.url, server.headers, os.environ) is not None


_IMPORTING = threading.Lock()
"""One import of the SDK at a time: its modules import each other in circles, where two threads deadlock."""
_HOMES = ("HOME", "USERPROFILE")
