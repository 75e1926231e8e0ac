"""The surroundings of one check: its own folder, home, fakes and processes.

The rule: after a check, none of its processes runs and none of its files is left.
"""

import asyncio
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from mcpzip_fakes.in_process import can_play
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.record import Record

from mcpzip.wire import LATEST_LEGACY_VERSION
from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.channel.in_process import InProcessChannel
from mcpzip_conformance.channel.sse import SseChannel
from mcpzip_conformance.channel.stdio import StdioChannel
from mcpzip_conformance.check_values import CheckValues
from mcpzip_conformance.client import PATIENCE, Answer, Client
from mcpzip_conformance.cluster import Cluster, Replica
from mcpzip_conformance.compare_json import Likeness, diff, lines
from mcpzip_conformance.declaration import Change
from mcpzip_conformance.errors import ControlError, Finding
from mcpzip_conformance.http_subject import Listening
from mcpzip_conformance.issuer import PEOPLE
from mcpzip_conformance.launching import Launcher, Prepared
from mcpzip_conformance.player import CLIENT_INFO, TO_START, Player
from mcpzip_conformance.processes import end_named
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route
from mcpzip_conformance.scene import Scene, Server
from mcpzip_conformance.store import RunningStore
from mcpzip_conformance.subject import Prompts, Resources, Start, Subject, Tools
from mcpzip_conformance.transcript import Transcript
from mcpzip_conformance.verdict import Measure

STRAIGHT = Subject(
    id="straight",
    title="straight",
    start=Start(command=("{upstream}",)),
    tools=Tools(names="{tool}"),
    prompts=Prompts(names="{prompt}"),
    resources=Resources(uris="{uri}"),
)
"""The direct side of every comparison: the server without a proxy."""
Answers = Mapping[str, Answer]
_TO_END = 0.2
"""Seconds that a process which serves several clients on stdio has to end, once it was told to."""


class Stage:
    """The surroundings of one check. patience: seconds to wait for any message; transcripts, straights: those
    of the connections to the subject and directly to servers, in the order in which they were opened;
    measured: figures of the group cost."""

    def __init__(self, subject: Subject, patience: float = PATIENCE) -> None:
        self.subject, self.patience = subject, patience
        self.transcripts: list[Transcript] = []
        self.straights: list[Transcript] = []
        self.measured: list[Measure] = []
        self._folder = Path()
        self._clients: list[Client] = []
        self._commands: dict[Client, tuple[list[str], dict[str, str], Path]] = {}
        """Of each client on stdio to the subject: the command, its environment and its working directory."""
        self._fakes: dict[str, FakeServer] = {}
        self._clusters: list[Cluster] = []
        self._store: RunningStore | None = None

    async def __aenter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="mcp-conformance-"))
        self.values = CheckValues(self.subject, self._folder)
        self._launcher = Launcher(self.subject, self._folder, self.values, self.patience)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Every client is ended, even if another one raises, before the folder is removed.
            ends = (client.end() for client in reversed(self._clients))
            raised = await asyncio.gather(*ends, return_exceptions=True)
            await asyncio.gather(*(cluster.end() for cluster in self._clusters))
            daemon = self.subject.shared is not None and not self.subject.start.url
            await end_named(self._folder, _TO_END if daemon else 0.0)
        finally:
            try:
                if self._store is not None:
                    await self._store.end()
                self._launcher.stop()
                self.values.stop()
            finally:
                shutil.rmtree(self._folder, ignore_errors=True)
        if error is None and (wrong := next((one for one in raised if one is not None), None)):
            raise wrong

    # Players

    async def straight(
        self,
        server: Server,
        version: str = LATEST_LEGACY_VERSION,
        *,
        answers: Answers | None = None,
        measured: bool = False,
    ) -> Player:
        """An open player directly to ``server``, over the transport that the subject uses for its servers. On
        stdio the server has a process only if that makes a difference: for a fault, or if it is measured.
        """
        fake = self._fake(server)
        client = Client(self.patience, answers)
        self.straights.append(client.transcript)
        if fake.url:
            client.channel = HttpChannel(fake.url, None, client)
        elif can_play(server.scenario) and not (measured or server.command or server.env):
            client.channel = InProcessChannel(server.scenario, fake.record, client)
        else:
            command = list(server.command) or fake.command
            env, cwd = self._launcher.surroundings({**fake.env, **server.env})
            client.channel = await StdioChannel.start(command, client, env=env, cwd=cwd)
        self._clients.append(client)
        player = Player(client, Route(STRAIGHT), version)
        await player.open()
        return player

    async def through(
        self,
        *servers: Server,
        version: str = LATEST_LEGACY_VERSION,
        env: Mapping[str, str] | None = None,
        answers: Answers | None = None,
        headers: Mapping[str, str] | None = None,
        info: bytes = CLIENT_INFO,
    ) -> Player:
        """An open player through the subject to ``servers``, with their tools listed. env: added to the
        subject's environment; answers: of its client to questions; headers: of every HTTP request; info: see
        `Player`. Raises Finding if the handshake fails."""
        player = await self.started(
            *servers, version=version, env=env, answers=answers, headers=headers, info=info
        )
        await player.open()
        await player.ready(self._first_tools(servers))
        return player

    async def started(
        self,
        *servers: Server,
        version: str = LATEST_LEGACY_VERSION,
        env: Mapping[str, str] | None = None,
        answers: Answers | None = None,
        headers: Mapping[str, str] | None = None,
        info: bytes = CLIENT_INFO,
    ) -> Player:
        """As `through`, but before the handshake."""
        await self._start_store()
        prepared = self._launcher.prepared(
            servers, [self._fake(server) for server in servers], more=env or {}
        )
        client = Client(self.patience, answers)
        self.transcripts.append(client.transcript)
        if prepared.url:
            listening = await self._launcher.listening(prepared)
            kind = SseChannel if self.subject.start.transport == "sse" else HttpChannel
            client.channel = kind(
                listening.url, listening.process, client, headers={**self.credentials(), **(headers or {})}
            )
        else:
            self._commands[client] = (prepared.command, prepared.env, prepared.cwd)
            client.channel = await StdioChannel.start(
                prepared.command, client, env=prepared.env, cwd=prepared.cwd
            )
        self._clients.append(client)
        return Player(client, self._route(servers), version, info)

    async def beside(
        self,
        player: Player,
        *,
        version: str | None = None,
        answers: Answers | None = None,
        headers: Mapping[str, str] | None = None,
        info: bytes = CLIENT_INFO,
    ) -> Player:
        """Another open player to the same process as ``player``; over stdio to the same command, started once
        more with the same config and home. The check must need http or shared."""
        channel = player.client.channel
        client = Client(self.patience, answers)
        self.transcripts.append(client.transcript)
        if isinstance(channel, HttpChannel):
            kind = type(channel)
            client.channel = kind(
                channel.url,
                channel.process,
                client,
                headers={**self.credentials(), **(headers or {})},
                owned=False,
            )
        else:
            command, surroundings, cwd = self._commands[player.client]
            self._commands[client] = (command, surroundings, cwd)
            client.channel = await StdioChannel.start(command, client, env=surroundings, cwd=cwd)
        self._clients.append(client)
        other = Player(client, player.route, version or player.version, info)
        await other.open()
        return other

    async def replicas(
        self, *servers: Server, answers: Answers | None = None, changes: Sequence[Change | None] = ()
    ) -> Cluster:
        """The replicas of the subject in front of ``servers``, each with a client whose session began there,
        and with its tools listed. answers: of these clients; changes: of each replica. The check must need
        replicas."""
        declared = self.subject.replicas
        assert declared is not None, "a check of replicas must need the feature"
        await self._start_store()
        fakes = [self._fake(server) for server in servers]
        prepared = [
            self._launcher.prepared(servers, fakes, home=f"home-{number}") for number in range(declared.count)
        ]
        cluster = Cluster([Replica(partial(self._replica_started, each)) for each in prepared])
        self._clusters.append(cluster)
        await cluster.start(changes)
        route = self._route(servers)
        for number in cluster.numbers:
            player = await self.client_of(cluster, route, at=number, answers=answers)
            cluster.players.append(player)
            await player.ready(self._first_tools(servers))
        return cluster

    async def client_of(
        self,
        cluster: Cluster,
        route: Route | None = None,
        *,
        at: int | None = None,
        version: str = LATEST_LEGACY_VERSION,
        answers: Answers | None = None,
        headers: Mapping[str, str] | None = None,
        opened: bool = True,
    ) -> Player:
        """Another open client of the replicas. at: the one to which its requests go, None for each in turn;
        opened: whether it makes its handshake."""
        client, balancer = Client(self.patience, answers), cluster.balancer()
        self.transcripts.append(client.transcript)
        balancer.only = at
        client.channel = HttpChannel(
            cluster.replicas[0].url,
            None,
            client,
            headers={**self.credentials(), **(headers or {})},
            transport=balancer,
        )
        self._clients.append(client)
        player = Player(client, route or cluster.players[0].route, version)
        cluster.serves(player, balancer)
        if opened:
            await player.open()
        return player

    async def in_session(self, player: Player) -> Player:
        """``player``, or another one to the same process if the subject has ended its session: then a client
        opens a new one."""
        channel = player.client.channel
        over = isinstance(channel, HttpChannel) and channel.over
        return await self.beside(player) if over else player

    def measure(self, name: str, value: float, unit: str) -> None:
        """Record a figure; see `verdict.Measure`. Raises ValueError if it is not a finite number."""
        if not math.isfinite(value):
            raise ValueError(f"{name} was measured as {value}")
        self.measured.append(Measure(name, round(value, 3), unit))

    def record(self, server: str) -> Record:
        """The record of the last started server with this name."""
        return self._fakes[server].record

    def release(self, server: str, tool: str, **arguments: object) -> None:
        """Let the held calls of ``tool`` go on whose arguments have these members."""
        self._fakes[server].release(tool, **arguments)

    def records(self) -> dict[str, Record]:
        """The records of the last started servers, by name."""
        return {name: fake.record for name, fake in self._fakes.items()}

    # Both sides

    async def same(self, scene: Scene, likeness: Likeness = Likeness.VALUE) -> list[Reply]:
        """Play ``scene`` directly and through the subject. Returns the subject's replies. Raises Finding if
        they differ, ControlError if the direct side fails."""
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
        answers = []
        try:
            for call in scene.calls:
                if call.server not in players:
                    server = next(server for server in scene.servers if server.name == call.server)
                    players[call.server] = await self.straight(server, scene.version)
                player = players[call.server]
                reply = await player.call(call.server, call.tool, call.arguments, call.meta)
                answers.append(self._shown(reply, STRAIGHT, likeness))
        except Finding as finding:
            raise ControlError(f"the direct side failed: {finding.summary}") from finding
        return answers

    @staticmethod
    def _shown(reply: Reply, subject: Subject, likeness: Likeness) -> list[str]:
        if reply.result is None:
            return ["answered with an error", *lines(reply.error or b"", likeness)]
        result = Route(subject).undone(reply.result)
        return ["answered with a result", *lines(result, likeness)]

    # Processes and files

    @property
    def store(self) -> RunningStore:
        """The store of the subject, which must have been started, and have one."""
        if self._store is None:
            raise ControlError("a check of the store must need the feature, and start the subject first")
        return self._store

    async def _start_store(self) -> None:
        declared = self.subject.replicas.store if self.subject.replicas is not None else None
        if declared is not None and self._store is None:
            env, folder = self._launcher.surroundings({}, "home-store")
            self._store = await RunningStore.start(declared, folder, env, self.patience * TO_START)
            self.values.store = self._store.address

    async def _replica_started(self, prepared: Prepared, change: Change | None) -> Listening:
        return await self._launcher.listening(self._launcher.changed(prepared, change))

    def credentials(self, person: str = PEOPLE[0]) -> dict[str, str]:
        """The headers by which the subject lets a person in; none if it lets anybody in."""
        return self.values.credentials(person)

    @staticmethod
    def _first_tools(servers: Sequence[Server]) -> list[tuple[str, str]]:
        """A tool of each server that shows its tools soon."""
        named = [(server, first.name) for server in servers for first in server.scenario.all_tools()[:1]]
        return [(server.name, name) for server, name in named if server.sound and name]

    def _route(self, servers: Sequence[Server]) -> Route:
        tools = Counter(tool.name for server in servers for tool in server.scenario.all_tools())
        shared = frozenset(name for name, count in tools.items() if count > 1)
        return Route(self.subject, alone=len(servers) == 1, shared=shared)

    def _fake(self, server: Server) -> FakeServer:
        fake = self._fakes[server.name] = self._launcher.fake(server)
        return fake
