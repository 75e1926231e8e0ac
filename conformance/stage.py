"""Where one check is played: a folder, a home, fakes and processes that are its own.

The rule: whatever a check does, when it is over nothing it started runs and nothing it wrote is left.
"""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import UNSET

from conformance.client import PATIENCE, Client, Reply
from conformance.errors import ControlError, Finding
from conformance.likeness import Likeness, diff, lines
from conformance.player import Player
from conformance.processes import environment
from conformance.route import Route
from conformance.scene import Scene, Server
from conformance.subject import Start, Subject, Tools
from conformance.template import as_json, fill, fill_words
from conformance.transcript import Transcript
from fakes.launch import Fakes, FakeServer
from fakes.record import Record
from mcpzip.wire import LATEST_LEGACY_VERSION

STRAIGHT = Subject(
    id="straight", title="straight", start=Start(command=("{upstream}",)), tools=Tools(names="{tool}")
)
"""The other side of every comparison: a server without anything before it."""


class Stage:
    """One check's surroundings. patience: seconds anything is waited for; transcripts: of every connection to
    the subject, in the order they opened."""

    def __init__(self, subject: Subject, patience: float = PATIENCE) -> None:
        self.subject, self.patience = subject, patience
        self.transcripts: list[Transcript] = []
        self._folder = Path()
        self._clients: list[Client] = []
        self._fakes: dict[str, FakeServer] = {}

    async def __aenter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="mcp-conformance-"))
        self._running = Fakes(self._folder / "fakes")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await asyncio.gather(*(client.end() for client in self._clients))
        finally:
            self._running.stop()
            shutil.rmtree(self._folder, ignore_errors=True)

    # Players

    async def straight(self, server: Server, version: str = LATEST_LEGACY_VERSION) -> Player:
        """Straight to ``server``, opened."""
        fake = self._fake(server)
        command = list(server.command) or fake.command
        player = await self._player(STRAIGHT, command, {**fake.env, **server.env}, version)
        await player.open()
        return player

    async def through(
        self, *servers: Server, version: str = LATEST_LEGACY_VERSION, env: Mapping[str, str] | None = None
    ) -> Player:
        """Through the subject to ``servers``, opened, their tools there. env: what the subject finds in its
        own environment on top. Finding when the handshake fails."""
        player = await self.started(*servers, version=version, env=env)
        await player.open()
        named = [(server, first.name) for server in servers for first in server.scenario.all_tools()[:1]]
        await player.ready([(server.name, name) for server, name in named if server.sound and name])
        return player

    async def started(
        self, *servers: Server, version: str = LATEST_LEGACY_VERSION, env: Mapping[str, str] | None = None
    ) -> Player:
        """As `through`, but not a word has been said yet."""
        places = self._places(servers)
        command = fill_words(self.subject.start.command, places)
        own = {key: str(fill(value, places)) for key, value in self.subject.start.env.items()}
        only = servers[0].env if self.subject.config is None else {}
        player = await self._player(self.subject, command, {**only, **own, **(env or {})}, version)
        self.transcripts.append(player.client.transcript)
        return player

    def record(self, server: str) -> Record:
        """What ``server`` saw: of the last side that was set up with a server of this name."""
        return self._fakes[server].record

    # Both sides

    async def same(self, scene: Scene, likeness: Likeness = Likeness.VALUE) -> list[Reply]:
        """Play ``scene`` straight and through the subject; the subject's replies. Finding when they differ,
        ControlError when the straight side fails."""
        straight = await self._play_straight(scene, likeness)
        player = await self.through(*scene.servers, version=scene.version)
        replies = []
        for call, expected in zip(scene.calls, straight, strict=True):
            try:
                reply = await player.call(call.server, call.tool, call.arguments, call.meta)
                shown = self._shown(reply, self.subject, likeness)
            except Finding as finding:
                reply, shown = Reply(), [finding.summary]
            difference = diff([str(call), *expected], [str(call), *shown], self.subject.title)
            if difference:
                raise Finding(f"The answer to {call} differs.", difference)
            replies.append(reply)
        return replies

    async def _play_straight(self, scene: Scene, likeness: Likeness) -> list[list[str]]:
        players: dict[str, Player] = {}
        told = []
        try:
            for call in scene.calls:
                if call.server not in players:
                    server = next(server for server in scene.servers if server.name == call.server)
                    players[call.server] = await self.straight(server, scene.version)
                player = players[call.server]
                reply = await player.call(call.server, call.tool, call.arguments, call.meta)
                told.append(self._shown(reply, STRAIGHT, likeness))
        except Finding as finding:
            raise ControlError(f"the straight side failed: {finding.summary}") from finding
        return told

    @staticmethod
    def _shown(reply: Reply, subject: Subject, likeness: Likeness) -> list[str]:
        if reply.result is None:
            return ["answered with an error", *lines(reply.error or b"", likeness)]
        result = Route(subject).undone(reply.result)
        return ["answered with a result", *lines(result, likeness)]

    # What it all stands on

    async def _player(
        self, subject: Subject, command: list[str], env: Mapping[str, str], version: str
    ) -> Player:
        home, temporary = self._folder / "home", self._folder / "tmp"
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        surroundings = environment(home, temporary, env)
        client = await Client.start(command, env=surroundings, cwd=home, patience=self.patience)
        self._clients.append(client)
        return Player(client, Route(subject), version)

    def _fake(self, server: Server) -> FakeServer:
        fake = self._running.start(server.scenario)
        self._fakes[server.name] = fake
        return fake

    def _places(self, servers: Sequence[Server]) -> dict[str, object]:
        fakes = [self._fake(server) for server in servers]
        places: dict[str, object] = {"python": sys.executable, "home": str(self._folder / "home")}
        config = self.subject.config
        if config is None:
            if len(servers) != 1:
                raise ControlError("a check with several servers must need the feature several-servers")
            return {**places, "upstream": list(servers[0].command) or fakes[0].command}
        entries: dict[str, object] = {}
        for server, fake in zip(servers, fakes, strict=True):
            entry = getattr(config, fake.transport)
            if entry is UNSET:
                raise ControlError(f"the subject has no config entry for {fake.transport}")
            entries[server.name] = fill(as_json(entry), _entry(server, fake))
        shape = entries if config.servers == "object" else list(entries.values())
        path = self._folder / f"config-{len(self._clients)}" / config.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            msgspec.json.format(msgspec.json.encode(fill(as_json(config.template), {"servers": shape})))
        )
        return {**places, "config": str(path)}


def _entry(server: Server, fake: FakeServer) -> dict[str, object]:
    argv = list(server.command) or fake.command
    if fake.url:
        return {"name": server.name, "url": fake.url}
    env = {**fake.env, **server.env}
    return {"name": server.name, "command": argv[0], "args": argv[1:], "argv": argv, "env": env}
