"""What a connection over HTTP knows of signing in."""

from typing import TYPE_CHECKING

from mcpzip.auth.sign_ins import SignIns
from mcpzip.auth.trouble import REFUSALS
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
        trouble = self._sign_ins.trouble(self._server.name) if status in REFUSALS else None
        if trouble is None:
            return None
        login = self._sign_ins.command(self._server.name) if trouble.person else ""
        return ChannelClosedError(
            trouble.reason, sent=False, remedy=trouble.remedy, fatal=False, status=status, login=login
        )
