"""Connections that plain, synchronous tests can use."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio.from_thread import BlockingPortal
from helpers.json_client import Answer, Json, JsonClient
from helpers.real_servers import RealWorld


@dataclass(frozen=True)
class Line:
    """A connection that plain, synchronous tests can use: its client lives in a thread of its own."""

    portal: BlockingPortal
    client: JsonClient
    through_mcpzip: bool = False

    def tools(self) -> list[Json]:
        """Every tool that is listed."""
        return self.portal.call(self.client.tools)

    def call(self, tool: str, arguments: Json, *, progress: bool = False) -> Answer:
        """`tools/call`."""
        return self.portal.call(lambda: self.client.call(tool, arguments, progress=progress))

    def say(self, tool: str, arguments: Json) -> str:
        """The text that one of mcpzip's own tools answers with."""
        result = self.call(tool, arguments).result
        assert result is not None
        assert not result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text


@dataclass(frozen=True)
class Real:
    """The world, and who talks to it.

    direct: a line to each server, by the client's era, as far as the server speaks it, and the name in the
    config. lines: to mcpzip, by the client's era.
    """

    world: RealWorld
    direct: Mapping[str, Mapping[str, Line]]
    lines: Mapping[str, Line]
    config: Path
