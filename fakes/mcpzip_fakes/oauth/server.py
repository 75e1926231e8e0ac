"""An authorization server of its own, for MCP servers that share one, or change theirs.

with FakeAuth(access_seconds=60) as auth, Fakes(directory) as fakes:
    shop = fakes.start(tools=["pay"], transport="http", auth=auth)
    bank = fakes.start(tools=["pay"], transport="http", auth=auth)
    ...
    assert len(auth.refreshes()) == 1
"""

from types import TracebackType
from typing import Self

import msgspec

from mcpzip_fakes.errors import scenario_error
from mcpzip_fakes.oauth.authority import Authority
from mcpzip_fakes.oauth.controls import AuthControls, Desk
from mcpzip_fakes.oauth.endpoints import AuthSite
from mcpzip_fakes.oauth.settings import option_keys, settings
from mcpzip_fakes.record import Writer
from mcpzip_fakes.serving import Threaded, listen


class FakeAuth(AuthControls):
    """An authorization server that runs as soon as it is created. keys: of `OAuth`; those of the guard apply
    to
    MCP servers without their own. authority: its decisions and state. Raises ScenarioError."""

    def __init__(self, *, record: str | None = None, port: int = 0, **keys: object) -> None:
        try:
            self.authority = Authority(settings(keys))
        except msgspec.ValidationError as error:
            of = option_keys()
            raise scenario_error(
                "auth", error, {"": of["oauth"], "faults": of["oauth.faults"], "clients": of["clients"]}
            ) from None
        super().__init__(Desk(self.authority).do)
        writer = Writer(record)
        writer.event("start", {"transport": "auth"})
        bound, self.authority.origin = listen("", port)
        site = AuthSite(self.authority, writer)
        self._serving = Threaded([(site, bound)], writer, f"fake auth {self.issuer}")

    def stop(self) -> None:
        """Close every connection and stop listening. Can be called again."""
        self._serving.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
