"""The servers of the fixture ``mcp_cassette``: recorded once, and played from then on.

The rule: without a mode that records, no real server is started, whatever the test says.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from mcpzip.cassettes.files import load
from mcpzip.model.errors import McpzipError
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.cassettes.messages import HANDSHAKE, heard
from mcpzip_fakes.launch import Fakes, FakeServer, importable
from mcpzip_fakes.record import Record
from mcpzip_fakes.scenario import Replay, Scenario

Mode = Literal["once", "none", "new_episodes", "all"]
MODES: tuple[Mode, ...] = get_args(Mode)
_PROGRAM = (sys.executable, "-m", "mcpzip_fakes")
_TO_END = 10.0
"""Seconds in which a recorder must have written everything, after it was told to end."""


class CassetteMissingError(McpzipError):
    """There is no cassette, and none may be recorded. The text says what to do."""


class CassetteServer:
    """What a client is given instead of the real server.

    path: of the cassette; records: whether the real server runs, recorded; command, args, env: of the
    process to start, "" and empty over HTTP; url: over HTTP, else ""; record: the messages and events of a
    server that is played, None for one that is recorded.
    """

    def __init__(
        self,
        path: str,
        *,
        records: bool,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        url: str = "",
        record: Record | None = None,
    ) -> None:
        self.path, self.records, self.url, self.record = path, records, url, record
        self.command = command[0] if command else ""
        self.args = list(command[1:])
        self.env = dict(env or {})

    @property
    def name(self) -> str:
        """The name of the cassette's file, without its ending."""
        return Path(self.path).stem

    @property
    def params(self) -> dict[str, object]:
        """stdio: the arguments of the SDK's ``StdioServerParameters``."""
        return {"command": self.command, "args": self.args, "env": self.env}

    @property
    def config(self) -> JsonObject:
        """The dict for ``mcpServers.{name}`` in a client's config."""
        if self.url:
            return {"type": "http", "url": self.url}
        return {"command": self.command, "args": self.args, "env": self.env}

    @property
    def unmatched(self) -> list[str]:
        """What the client was told about each request that is not in the cassette."""
        if self.record is None:
            return []
        return [line.text for line in self.record.events("unmatched")]

    @property
    def unused(self) -> list[str]:
        """The recorded requests that were not sent: the number of the exchange, and its method and name."""
        if self.record is None:
            return []
        played = {line.detail.get("exchange") for line in self.record.events("played")}
        return [
            f"exchange {each.number}: {each.title}"
            for each in heard(load(self.path).exchanges)
            if each.request is not None
            and each.request.is_request
            and each.request.method not in HANDSHAKE
            and each.number not in played
        ]


class Cassettes:
    """Starts the servers of one test, and ends them.

    folder: where cassettes are; place: for what is needed during the test; recorded: the cassettes that were
    recorded since the run of tests began, to which ``all`` adds.
    """

    def __init__(self, folder: Path, place: Path, mode: Mode, recorded: set[str]) -> None:
        self.servers: list[CassetteServer] = []
        self._folder, self._mode, self._recorded = folder, mode, recorded
        self._place, self._fakes = place, Fakes(place)
        self._recorders: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        name: str,
        command: Sequence[str] = (),
        *,
        url: str = "",
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        mask: Sequence[str] = (),
        secret: Sequence[str] = (),
    ) -> CassetteServer:
        """A server for the cassette ``name``: played, or recorded from ``command`` or ``url``. env: variables
        for the command; headers: for the URL; ignore: paths of requests that don't count; mask, secret: as
        ``mcpzip-fake record`` takes them. Raises CassetteMissingError; CassetteError if the cassette can't be
        used.
        """
        path = str(self._folder / (name if name.endswith(".toml") else f"{name}.toml"))
        exists = os.path.exists(path)
        if self._mode == "all" and path not in self._recorded:
            remove(path)
            exists = False
        options = [*_options("--mask", mask), *_options("--secret", secret)]
        if url:
            options += _options("--header", [f"{key}: {value}" for key, value in (headers or {}).items()])
        if self._mode == "all" or (not exists and self._mode != "none"):
            server = self._record(path, command, url, env or {}, options)
        elif not exists:
            raise CassetteMissingError(
                f"There is no cassette {path}, and the mode is none. Record it with --mcp-record=once."
            )
        elif self._mode == "new_episodes" and (command or url):
            replay = Replay(
                cassette=path,
                ignore=tuple(ignore),
                new=True,
                command=tuple(command),
                mask=tuple(mask),
                secret=tuple(secret),
            )
            if url:
                server = self._extend_over_http(
                    path, url, env or {}, [*options, *_options("--ignore", ignore)]
                )
            else:
                server = self._extend(replay, env or {})
        else:
            server = self._play(path, url, ignore)
        self.servers.append(server)
        return server

    def stop(self) -> None:
        """Ends all; what was recorded is then in its cassette."""
        try:
            for process in self._recorders:
                process.terminate()
            for process in self._recorders:
                try:
                    process.wait(_TO_END)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                if process.stdout:
                    process.stdout.close()
        finally:
            self._fakes.stop()

    def _play(self, path: str, url: str, ignore: Sequence[str]) -> CassetteServer:
        scenario = Scenario.load(path)
        assert scenario.replay is not None
        replay = msgspec.structs.replace(scenario.replay, ignore=tuple(ignore))
        recorded = load(path).transport
        transport = "http" if url and recorded == "stdio" else recorded
        fake: FakeServer = self._fakes.start(
            msgspec.structs.replace(scenario, replay=replay), transport=transport
        )
        return CassetteServer(
            path, records=False, command=fake.command, env=fake.env, url=fake.url, record=fake.record
        )

    def _extend(self, replay: Replay, env: Mapping[str, str]) -> CassetteServer:
        """It is played, with the real server on stdio behind it."""
        fake = self._fakes.start(msgspec.structs.replace(Scenario.load(replay.cassette), replay=replay))
        return CassetteServer(
            replay.cassette, records=True, command=fake.command, env={**fake.env, **env}, record=fake.record
        )

    def _extend_over_http(
        self, path: str, url: str, env: Mapping[str, str], options: Sequence[str]
    ) -> CassetteServer:
        """It is played, with the real server at ``url`` behind it."""
        self._place.mkdir(parents=True, exist_ok=True)
        record = Record(self._place / f"{len(self.servers) + 1}-{Path(path).stem}.jsonl")
        words = [path, "--new", "--transport", "http", "--record", str(record.path), *options]
        return CassetteServer(path, records=True, url=self._listening(url, words, env), record=record)

    def _record(
        self, path: str, command: Sequence[str], url: str, env: Mapping[str, str], options: Sequence[str]
    ) -> CassetteServer:
        if bool(command) == bool(url):
            raise CassetteMissingError(
                f"There is no cassette {path} yet. Say what to record: mcp_cassette(command, arguments …) or "
                "mcp_cassette(url=…)."
            )
        self._recorded.add(path)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        words = ["record", path, *options]
        if command:
            recorder = [*_PROGRAM, *words, "--", *command]
            return CassetteServer(path, records=True, command=recorder, env={**importable(), **env})
        return CassetteServer(path, records=True, url=self._listening(url, words, env))

    def _listening(self, url: str, words: Sequence[str], env: Mapping[str, str]) -> str:
        """Starts what stands before the real server at ``url``; its own URL."""
        process = subprocess.Popen(
            [*_PROGRAM, *words, "--url", url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, **importable(), **env},
        )
        self._recorders.append(process)
        said = process.stdout.readline().decode() if process.stdout else ""
        if not said.startswith("listening "):
            raise CassetteMissingError(f"{url} can't be recorded; what the recorder said is above.")
        return said.split()[1]


def remove(path: str) -> None:
    """Removes a cassette and the large messages beside it."""
    if not os.path.exists(path):
        return
    bodies = Path(path).with_suffix(".bodies")
    os.unlink(path)
    if bodies.is_dir():
        for file in bodies.glob("*.json"):
            file.unlink()
        if not any(bodies.iterdir()):
            bodies.rmdir()


def mode_of(option: str | None, marker: str | None, environment: Mapping[str, str]) -> Mode:
    """The mode: of the option, else of the marker, else ``none`` where CI is set, else ``once``. Raises
    ValueError for an unknown one."""
    for given in (option, marker):
        if given is not None:
            if found := next((mode for mode in MODES if mode == given), None):
                return found
            raise ValueError(f"record_mode is {given!r}; choose from {', '.join(MODES)}")
    return "none" if environment.get("CI", "").lower() not in ("", "0", "false") else "once"


def _options(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]
