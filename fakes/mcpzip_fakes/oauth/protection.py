"""A protected MCP server: its guard, its authorization server, and the site around both."""

from starlette.types import ASGIApp

from mcpzip_fakes.oauth.authority import Authority
from mcpzip_fakes.oauth.controls import AuthControls, Desk
from mcpzip_fakes.oauth.endpoints import AuthSite, ProtectedSite
from mcpzip_fakes.oauth.guard import Guard
from mcpzip_fakes.oauth.settings import OAuth
from mcpzip_fakes.record import Writer


class Protection:
    """The protection of the MCP server ``name``. told: its settings; authority: the authorization server
    whose tokens it requires, None for one of its own.

    guard; controls: of its authorization server; apart: the application of its own authorization server if
    that has a port of its own, else None.
    """

    def __init__(self, name: str, told: OAuth | None, record: Writer, authority: Authority | None) -> None:
        self._shared = authority is not None
        self._authority = authority or Authority(told or OAuth())
        self.guard = Guard(self._authority, name, record, told if self._shared else None)
        self.controls = AuthControls(Desk(self._authority).do)
        self._site = AuthSite(self._authority, record)
        self._apart = not self._shared and self._authority.told.own_port

    @property
    def apart(self) -> ASGIApp | None:
        """See the class."""
        return self._site if self._apart else None

    def around(self, inner: ASGIApp) -> ASGIApp:
        """The complete application; ``inner``: the MCP server, which calls the guard."""
        same_origin = not self._shared and not self._apart
        return ProtectedSite(inner, self.guard, self._site, same_origin=same_origin)

    def trust(self, authority: Authority) -> None:
        """Require the tokens of ``authority`` from now on, with unchanged settings."""
        if self._shared:
            self._site.authority = authority
        else:
            self.guard.configure(self._authority.told)
        self.guard.trust(authority)

    def stands_at(self, url: str, auth_origin: str = "") -> None:
        """Set the URL of the MCP endpoint, and the origin of the authorization server if that differs."""
        if not self._shared:
            self._authority.origin = auth_origin or url[: url.index("/", len("http://"))]
        self.guard.stands_at(url)
