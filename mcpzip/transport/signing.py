"""What a connection over HTTP knows of signing in."""

from typing import TYPE_CHECKING

from mcpzip.auth.failure import REFUSALS
from mcpzip.auth.sign_ins import SignIns
from mcpzip.config import ServerConfig
from mcpzip.transport.base import ChannelClosedError

if TYPE_CHECKING:
    import httpx


class Unsigned:
    """Requests go as they are (`base.Signing`)."""

    auth = None

    def refused(self, status: int) -> None:
        """It is no matter of signing in that we know of."""


class ServerSigning:
    """How the requests to one server are signed (`base.Signing`)."""

    def __init__(self, server: ServerConfig, sign_ins: SignIns) -> None:
        """Raises McpzipError."""
        self._server, self._sign_ins = server, sign_ins
        self._auth = sign_ins.of(server)

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
