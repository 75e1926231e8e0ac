"""What plays a cassette over HTTP: the recorded messages, and the engine for clients of another era."""

from starlette.types import ASGIApp

from mcpzip_fakes.engine import Note
from mcpzip_fakes.faults import Fault
from mcpzip_fakes.replay.engine import engine_maker, with_recorded_lists
from mcpzip_fakes.replay.http import HttpPlayer
from mcpzip_fakes.replay.loaded import cassette
from mcpzip_fakes.replay.sse import SsePlayer
from mcpzip_fakes.scenario import Scenario


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

    def around(self, other: ASGIApp, note: Note) -> ASGIApp:
        """The application that plays; ``other`` has the engine. note: records an event."""
        kind = SsePlayer if self._transport == "sse" else HttpPlayer
        self._app = kind(self.scenario, self._cassette, other, self._run, note)
        return self._app

    def doom(self, doomed: dict[object, Fault]) -> None:
        """doomed: by request id, the fault that breaks the reply (`asgi.Gate`)."""
        assert self._app is not None
        self._app.doomed = doomed
