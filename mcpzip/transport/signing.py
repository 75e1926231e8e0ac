"""Signing the requests of a connection over HTTP."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mcpzip.auth.failure import REFUSALS
from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.transport.base import ChannelClosedError

if TYPE_CHECKING:
    import httpx


class Unsigned:
    """Sends requests unsigned (`base.Signing`)."""

    auth = None

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """environment: in which requests are made."""
        self.environment = environment

    def refused(self, status: int) -> None:
        """Never a sign-in problem."""


class ServerSigning:
    """Signs the requests to one server (`base.Signing`)."""

    def __init__(self, server: ServerConfig, sign_ins: SignIns) -> None:
        """Raises McpzipError."""
        self._server, self._sign_ins = server, sign_ins
        self._auth = sign_ins.of(server)
        self.environment = sign_ins.environment

    @property
    def auth(self) -> "httpx.Auth | None":
        return self._auth

    def refused(self, status: int) -> ChannelClosedError | None:
        failure = self._sign_ins.failure(self._server.name) if status in REFUSALS else None
        if failure is None:
            return None
        login = self._sign_ins.command(self._server.name) if failure.needs_login else ""
        return ChannelClosedError(
            failure.reason, sent=False, remedy=failure.remedy, fatal=False, status=status, login=login
        )
