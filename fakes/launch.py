"""Start a fake from Python, and end it again.

with Fakes(directory) as fakes:
    slack = fakes.start("slack")                                  # stdio: started by whoever runs slack.command
    shop = fakes.start(tools=["pay"], transport="http")           # serving at shop.url
    broken = fakes.start(tools=["pay"], faults=["silence"])
    client_config = {"mcpServers": {fake.name: fake.config for fake in (slack, shop, broken)}}
    ...
    assert slack.record.calls("send_message") == [...]
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from fakes.answer import JsonObject
from fakes.faults import Fault
from fakes.record import Record
from fakes.scenario import Scenario, Tool

_PACKAGES = Path(__file__).resolve().parent.parent


class FakeServer:
    """A fake that is running, or (stdio) ready to be run by its client.

    name; scenario; transport; config: what belongs under ``mcpServers.{name}`` in a client's config; command: the
    words to run it (stdio; empty otherwise); env: what that command needs in its environment; url: where it listens
    ("" for stdio); record: what it saw, over all its processes.
    """

    def __init__(self, scenario: Scenario, transport: str, record: Record) -> None:
        self.name = scenario.name
        self.scenario = scenario
        self.transport = transport
        self.record = record
        self.command: list[str] = []
        self.env: dict[str, str] = {}
        self.url = ""

    @property
    def config(self) -> JsonObject:
        """The dict for ``mcpServers.{name}``."""
        env: JsonObject = {"env": self.env} if self.env else {}
        return {"command": self.command[0], "args": self.command[1:], **env}

    def stop(self) -> None:
        """End it, every process of it that still runs, and the grandchildren it left. It may be called again."""
        ended = {line.pid for line in self.record.events("exit")}
        left = [line.pid for line in self.record.events("start") if line.pid not in ended]
        left += [
            child
            for line in self.record.events("grandchild")
            if isinstance(child := line.detail["child"], int)
        ]
        for pid in left:
            if pid != os.getpid():
                _end(pid, str(self.record.path))


class Fakes:
    """Starts fakes, keeps their files in ``directory`` and ends them all at the end of the ``with`` block."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._servers: list[FakeServer] = []

    def start(
        self,
        scenario: "Scenario | str | Path | Mapping[str, object] | None" = None,
        *,
        transport: str = "stdio",
        era: str | None = None,
        tools: Sequence[Tool | Mapping[str, object] | str] | None = None,
        faults: Sequence[Fault | Mapping[str, object] | str] | None = None,
        **keys: object,
    ) -> FakeServer:
        """A fake of ``scenario`` (a `Scenario`, a mapping, a file, the name of a shipped one; none: an empty server),
        with ``era``, ``tools``, ``faults`` and any other key of a scenario (``name=``, ``page_size=``, …) put in its place.

        A tool may be a `Tool`, a table, or just a name (it echoes); a fault a `Fault`, a table, or just its kind.
        transport: ``stdio``, ``http`` or ``sse``. ScenarioError when something doesn't fit.
        """
        told = described(scenario, era=era, tools=tools, faults=faults, **keys)
        place = self._directory / f"{len(self._servers) + 1}-{told.name}"
        place.mkdir(parents=True)
        server = _stdio(told, place)
        self._servers.append(server)
        return server

    def stop(self) -> None:
        """End every fake that was started."""
        for server in reversed(self._servers):
            server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def described(scenario: "Scenario | str | Path | Mapping[str, object] | None", **keys: object) -> Scenario:
    """``scenario`` with these keys in place of its own; a key that is None stays as it was. ScenarioError as ever."""
    if isinstance(scenario, str | Path):
        scenario = Scenario.load(scenario)
    base = msgspec.to_builtins(scenario) if isinstance(scenario, Scenario) else dict(scenario or {})
    given = {key: value for key, value in keys.items() if value is not None}
    return Scenario.from_mapping(
        {**base, **given}, f"the scenario {given.get('name', base.get('name', 'fake'))!r}"
    )


def _stdio(scenario: Scenario, place: Path) -> FakeServer:
    record = place / "record.jsonl"
    server = FakeServer(scenario, "stdio", Record(record))
    server.command = [sys.executable, "-m", "fakes.stdio", str(scenario.save(place / "scenario.json"))]
    server.command += ["--record", str(record)]
    server.env = importable()
    return server


def importable() -> dict[str, str]:
    """The environment that lets another Python of this installation import us: empty once we are installed."""
    return {} if _PACKAGES.name in ("site-packages", "dist-packages") else {"PYTHONPATH": str(_PACKAGES)}


def _end(pid: int, mark: str) -> None:
    """End process ``pid``, unless it is gone and its number belongs to another by now."""
    command = Path(f"/proc/{pid}/cmdline")
    try:
        if not command.parent.parent.joinpath("self").exists() or mark.encode() in command.read_bytes():
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        pass  # gone already; Windows says PermissionError
