"""Starts and ends fakes from Python.

with Fakes(directory) as fakes:
    slack = fakes.start("slack")                               # stdio: slack.command, for the client to run
    shop = fakes.start(tools=["pay"], transport="http")        # serving at shop.url
    broken = fakes.start(tools=["pay"], faults=["silence"])
    client_config = {"mcpServers": {fake.name: fake.config for fake in (slack, shop, broken)}}
    ...
    assert slack.record.calls("send_message") == [...]
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from mcpzip import model
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.definitions import Tool
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.faults import Fault
from mcpzip_fakes.holds import RELEASE, release
from mcpzip_fakes.record import Record, Writer, begun
from mcpzip_fakes.scenario import Scenario
from mcpzip_fakes.sdk import check_sdk

if TYPE_CHECKING:
    from mcpzip_fakes.oauth.controls import AuthControls  # brings urllib.request
    from mcpzip_fakes.oauth.protection import Protection
    from mcpzip_fakes.oauth.server import FakeAuth

_HERE = Path(__file__).resolve().parent.parent


class FakeServer:
    """A fake that is running, or (stdio) ready to be run by its client.

    name; scenario; transport; config: its entry under ``mcpServers.{name}`` in a client's config; command:
    its command line (stdio; empty otherwise); env: the environment that this command needs; url: its URL (""
    for stdio); record: the messages of all its processes; auth: the authorization server whose tokens it
    requires, or None.
    """

    def __init__(self, scenario: Scenario, transport: str, record: Record) -> None:
        self.name = scenario.name
        self.scenario = scenario
        self.transport = transport
        self.record = record
        self.command: list[str] = []
        self.env: dict[str, str] = {}
        self.url = ""
        self.auth: AuthControls | None = None
        self._protection: Protection | None = None
        self._stop: Callable[[], None] = _nothing

    @property
    def config(self) -> JsonObject:
        """The dict for ``mcpServers.{name}``."""
        if self.url:
            return {"type": self.transport, "url": self.url}
        env: JsonObject = {"env": self.env} if self.env else {}
        return {"command": self.command[0], "args": self.command[1:], **env}

    def ready_to_run(self, file: Path) -> None:
        """stdio: set the command for ``file``."""
        self.command = [
            sys.executable,
            "-m",
            "mcpzip_fakes.stdio",
            str(file),
            "--record",
            str(self.record.path),
        ]
        self.env = importable()

    def serve(
        self,
        file: Path,
        *,
        stateless: bool = False,
        json_response: bool = False,
        auth: "FakeAuth | None" = None,
    ) -> None:
        """http and sse: listen at ``url``. From a thread, which is quick, or from a process if one of the
        faults ends it."""
        if any(fault.row.ends for fault in self.scenario.faults):
            self._serve_process(file, ["--stateless"] * stateless + ["--json-response"] * json_response)
            if self.scenario.oauth:
                from mcpzip_fakes.oauth.controls import AuthControls

                self.auth = AuthControls.at(self.url)
            return
        check_sdk()
        from mcpzip_fakes.http import HttpFake  # imports the SDK, which takes long
        from mcpzip_fakes.serving import Serving

        number, writer = begun(str(self.record.path), {"transport": self.transport})
        fake = HttpFake(
            self.scenario,
            writer,
            transport=self.transport,
            run=number,
            stateless=stateless,
            json_response=json_response,
            authority=auth.authority if auth else None,
        )
        serving = Serving(fake, writer)
        self.url, self._stop = serving.url, serving.stop
        self._protection = fake.protection
        self.auth = auth or (fake.protection.controls if fake.protection else None)

    def trust(self, auth: "FakeAuth") -> None:
        """Require the tokens of this authorization server only, from now on. Raises ValueError if it
        can't."""
        if self._protection is None:
            raise ValueError(f"{self.name!r} is not protected, or runs in a process of its own")
        self._protection.trust(auth.authority)
        self.auth = auth

    def _serve_process(self, file: Path, flags: list[str]) -> None:
        command = [sys.executable, "-m", "mcpzip_fakes", str(file), "--transport", self.transport, *flags]
        child = subprocess.Popen(
            [*command, "--record", str(self.record.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, **importable()},
        )

        def stop() -> None:
            child.kill()
            child.wait()
            if child.stdout:
                child.stdout.close()

        self._stop = stop
        line = child.stdout.readline().decode() if child.stdout else ""
        if not line.startswith("listening "):
            stop()
            raise RuntimeError(f"the fake {self.name!r} did not start; run {' '.join(command)} to see why")
        self.url = line.split()[1]

    def release(self, tool: str, **arguments: object) -> None:
        """Let the held calls of ``tool`` go on (``hold``): those whose arguments have these members, now and
        later, in all its processes."""
        writer = Writer(str(self.record.path))
        writer.event(RELEASE, release(tool, arguments))
        writer.close()

    def stop(self) -> None:
        """End it, with all its processes that still run, and their grandchildren. Can be called again."""
        self._stop()
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
    """Starts fakes with their files in ``directory``, and ends them at the end of the ``with`` block."""

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
        stateless: bool = False,
        json_response: bool = False,
        auth: "FakeAuth | None" = None,
        **keys: object,
    ) -> FakeServer:
        """A fake of ``scenario`` (a `Scenario`, a mapping, a file, the name of a shipped one; none: an empty
        server), with ``era``, ``tools``, ``faults`` and any other key of a scenario (``name=``,
        ``page_size=``, …) replaced.

        A tool can be a `Tool`, a table, or just a name (it echoes); a fault a `Fault`, a table, or just its
        kind. transport: ``stdio``, ``http`` or ``sse``; stateless and json_response are for http. auth:
        require the tokens of this authorization server (``oauth={...}`` creates one of its own); for http
        and sse. Raises ScenarioError if something is invalid.
        """
        told = described(scenario, era=era, tools=tools, faults=faults, **keys).over(transport)
        if auth is not None:
            _shareable(told, transport)
        place = self._directory / f"{len(self._servers) + 1}-{told.name}"
        place.mkdir(parents=True)
        server = FakeServer(told, transport, Record(place / "record.jsonl"))
        if transport == "stdio":
            server.ready_to_run(told.save(place / "scenario.json"))
        else:
            server.serve(
                told.save(place / "scenario.json"),
                stateless=stateless,
                json_response=json_response,
                auth=auth,
            )
        self._servers.append(server)
        return server

    def stop(self) -> None:
        """End every fake that was started, even if ending one fails."""
        with ExitStack() as ending:
            for server in self._servers:
                ending.callback(server.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def described(scenario: "Scenario | str | Path | Mapping[str, object] | None", **keys: object) -> Scenario:
    """``scenario`` with these keys replaced; a key that is None stays unchanged. Raises ScenarioError."""
    if isinstance(scenario, str | Path):
        scenario = Scenario.load(scenario)
    base = msgspec.to_builtins(scenario) if isinstance(scenario, Scenario) else dict(scenario or {})
    given = {key: value for key, value in keys.items() if value is not None}
    return Scenario.from_mapping(
        {**base, **given}, f"the scenario {given.get('name', base.get('name', 'fake'))!r}"
    )


def _shareable(told: Scenario, transport: str) -> None:
    """Raise ScenarioError if this server can't share an authorization server."""
    if transport == "stdio":
        raise ScenarioError(told.name, "auth", "there are no tokens over stdio", "use http or sse")
    if any(fault.row.ends for fault in told.faults):
        raise ScenarioError(
            told.name, "auth", "a fault ends its process, and it can't share", "give it oauth instead"
        )


def importable() -> dict[str, str]:
    """The environment with which another Python process can import this package: empty if it is
    installed."""
    if _HERE.name in ("site-packages", "dist-packages"):
        return {}
    return {"PYTHONPATH": os.pathsep.join([str(_HERE), str(Path(model.__file__).resolve().parents[2])])}


def _end(pid: int, mark: str) -> None:
    """End process ``pid``, unless it has ended and another process has its number."""
    command = Path(f"/proc/{pid}/cmdline")
    try:
        if not command.parent.parent.joinpath("self").exists() or mark.encode() in command.read_bytes():
            os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        pass  # ended already; Windows raises PermissionError


def _nothing() -> None:
    """Stops nothing: the client runs the processes."""
