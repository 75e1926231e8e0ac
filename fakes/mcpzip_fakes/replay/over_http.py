"""What plays a cassette over HTTP: the recorded messages, and the engine for clients of another era."""

from typing import TYPE_CHECKING

import msgspec
from starlette.types import ASGIApp

from mcpzip_fakes.engine import Note
from mcpzip_fakes.faults import Fault
from mcpzip_fakes.replay.engine import engine_maker, with_recorded_lists
from mcpzip_fakes.replay.http import HttpPlayer
from mcpzip_fakes.replay.loaded import cassette
from mcpzip_fakes.replay.report import report
from mcpzip_fakes.replay.sse import SsePlayer
from mcpzip_fakes.scenario import Replay, Scenario

if TYPE_CHECKING:
    from mcpzip_fakes.replay.real_http_server import RealHttpServer


class Player:
    """scenario: with what the recorded server said of itself; make: makes the engine, as `Engine` does."""

    def __init__(self, scenario: Scenario, transport: str, run: int) -> None:
        """run: the number of this process on its record. Raises CassetteError."""
        assert scenario.replay is not None
        self._cassette = cassette(scenario.replay.cassette, scenario.replay.ignore)
        self._transport, self._run = transport, run
        self.scenario = with_recorded_lists(scenario, self._cassette)
        self.make = engine_maker(self._cassette, run)
        self._app: HttpPlayer | SsePlayer | None = None
        self._real = None
        if scenario.replay.new and transport == "http":
            url = scenario.replay.url or self._cassette.url
            self._real = _real_server(msgspec.structs.replace(scenario.replay, url=url))

    def around(self, other: ASGIApp, note: Note) -> ASGIApp:
        """The application that plays; ``other`` has the engine. note: records an event."""
        if self._transport == "sse":
            self._app = SsePlayer(self.scenario, self._cassette, other, self._run, note)
        else:
            self._app = HttpPlayer(self.scenario, self._cassette, other, self._run, note, self._real)
        return self._app

    async def close(self) -> None:
        """Nothing more comes: write what was recorded."""
        if self._real is not None:
            await self._real.close()

    def doom(self, doomed: dict[object, Fault]) -> None:
        """doomed: by request id, the fault that breaks the reply (`asgi.Gate`)."""
        assert self._app is not None
        self._app.doomed = doomed


def _real_server(replay: Replay) -> "RealHttpServer":
    """The server that answers what wasn't recorded."""
    from mcpzip_fakes.replay.real_http_server import RealHttpServer  # imports httpx, and is rarely needed

    return RealHttpServer(replay, report)
