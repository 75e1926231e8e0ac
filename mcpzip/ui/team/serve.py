"""Serves the page for a team beside `/mcp`, on an address of its own."""

import socket
from collections.abc import Callable

from mcpzip.config import Config
from mcpzip.config.schema import PageConfig
from mcpzip.identity.api_keys import ApiKeys
from mcpzip.model.errors import ConfigError
from mcpzip.proxy.person_upstreams import SIGN_INS
from mcpzip.proxy.proxy import Proxy
from mcpzip.server.http.access import Address, read_address, take
from mcpzip.server.http.application_server import ApplicationServer
from mcpzip.system.descriptors import raise_descriptor_limit
from mcpzip.ui.team.application import TeamApplication
from mcpzip.ui.team.issuer_sign_in import IssuerSignIn
from mcpzip.ui.team.limits import LIMITS


class TeamPage:
    """The page that ``config`` asks for, which has an ``http.page``. It listens from the beginning, and
    answers from `start` on.
    """

    def __init__(self, config: Config, page: PageConfig, warn: Callable[[str], None]) -> None:
        """warn: is told what is wrong. Raises ConfigError if it can't listen."""
        address = _address(config.path, page)
        self._config, self._page, self._warn = config, page, warn
        self._listening: socket.socket = take(address)
        own = address.url(self._listening.getsockname()[1], "")
        self._origin = page.public_url or own
        self.url = f"{self._origin}/" if self._origin == own else f"{self._origin}/ at {own}/"
        try:
            self._issuer = IssuerSignIn(config, page, self._origin, warn) if page.client_id else None
        except ConfigError:
            self._listening.close()
            raise
        self._application: TeamApplication | None = None

    async def start(self, proxy: Proxy) -> None:
        """Begins to serve what ``proxy`` has."""
        file = self._config.http.api_keys
        keys = ApiKeys(file, self._warn) if file else None
        application = TeamApplication(proxy, keys, self._origin, self._warn, self._issuer)
        self._application = application
        proxy.views.sign_ins_page = f"{self._origin}{SIGN_INS}"
        room = max(1, raise_descriptor_limit(LIMITS.connections + LIMITS.turned_away) - LIMITS.turned_away)
        self._server = ApplicationServer(application, self._listening, LIMITS, min(room, LIMITS.connections))
        await self._server.start()

    async def close(self) -> None:
        """Ends all connections, and what is under way for them."""
        if self._application is None:
            self._listening.close()
            return
        self._server.shutdown()
        await self._application.close()
        await self._server.close()


def _address(path: str, page: PageConfig) -> Address:
    try:
        address = read_address(page.listen)
    except ConfigError as error:
        raise ConfigError(path, "http.page", error.found, error.remedy.replace(":8931", ":8932")) from None
    if not (address.is_loopback or page.public_url):
        raise ConfigError(
            path,
            "http.page",
            f"{address.host} can be reached from other machines, and browsers need https for that",
            f'listen on loopback, or write {{"listen": "{page.listen}", "public_url": "https://…"}}, the URL '
            "of your reverse proxy",
        )
    return address
