"""The surroundings of one check: its own folder, home, fakes and processes.

The rule: after a check, none of its processes runs and none of its files is left.
"""

import asyncio
import math
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.in_process import can_play
from mcpzip_fakes.launch import Fakes, FakeServer
from mcpzip_fakes.record import Record
from msgspec import UNSET

from mcpzip.wire import LATEST_LEGACY_VERSION
from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.channel.in_process import InProcessChannel
from mcpzip_conformance.channel.sse import SseChannel
from mcpzip_conformance.channel.stdio import StdioChannel
from mcpzip_conformance.check_values import CheckValues
from mcpzip_conformance.client import PATIENCE, Answer, Client
from mcpzip_conformance.cluster import Cluster, Replica
from mcpzip_conformance.compare_json import Likeness, diff, lines
from mcpzip_conformance.errors import ControlError, Finding, NotPlayableError
from mcpzip_conformance.http_subject import Listening, free_port
from mcpzip_conformance.installation import required
from mcpzip_conformance.issuer import PEOPLE
from mcpzip_conformance.player import CLIENT_INFO, TO_START, Player
from mcpzip_conformance.processes import end_named, environment
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route
from mcpzip_conformance.scene import Scene, Server
from mcpzip_conformance.subject import Prompts, Resources, Start, Subject, Tools
from mcpzip_conformance.template import as_json, fill, fill_words, places_in
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
_TO_END = 2.0
"""Seconds that a process which serves several clients on stdio may take to end after the last one left."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """How a process of the subject is started. url: "" for stdio; port: of a subject on HTTP."""

    command: list[str]
    env: dict[str, str]
    cwd: Path
    url: str
    port: int


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
        self._configs = 0

    async def __aenter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="mcp-conformance-"))
        self.values = CheckValues(self.subject, self._folder)
        self._running = Fakes(self._folder / "fakes")
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
                self._running.stop()
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
            env, cwd = self._surroundings({**fake.env, **server.env})
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
        prepared = self._prepared(servers, [self._fake(server) for server in servers], more=env or {})
        client = Client(self.patience, answers)
        self.transcripts.append(client.transcript)
        if prepared.url:
            listening = await self._listening(prepared)
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

    async def replicas(self, *servers: Server, answers: Answers | None = None) -> Cluster:
        """The replicas of the subject in front of ``servers``, each with a client whose session began there,
        and with its tools listed. answers: of these clients. The check must need replicas."""
        declared = self.subject.replicas
        assert declared is not None, "a check of replicas must need the feature"
        fakes = [self._fake(server) for server in servers]
        prepared = [self._prepared(servers, fakes, home=f"home-{number}") for number in range(declared.count)]
        cluster = Cluster([Replica(partial(self._listening, each)) for each in prepared])
        self._clusters.append(cluster)
        await cluster.start()
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

    def credentials(self, person: str = PEOPLE[0]) -> dict[str, str]:
        """The headers by which the subject lets a person in; none if it lets anybody in."""
        return self.values.credentials(person)

    async def _listening(self, prepared: "_Prepared") -> Listening:
        return await Listening.start(
            prepared.command,
            env=prepared.env,
            cwd=prepared.cwd,
            url=prepared.url,
            up=self.subject.start.up,
            port=prepared.port,
            patience=self.patience * TO_START,
        )

    @staticmethod
    def _first_tools(servers: Sequence[Server]) -> list[tuple[str, str]]:
        """A tool of each server that shows its tools soon."""
        named = [(server, first.name) for server in servers for first in server.scenario.all_tools()[:1]]
        return [(server.name, name) for server, name in named if server.sound and name]

    def _route(self, servers: Sequence[Server]) -> Route:
        tools = Counter(tool.name for server in servers for tool in server.scenario.all_tools())
        shared = frozenset(name for name, count in tools.items() if count > 1)
        return Route(self.subject, alone=len(servers) == 1, shared=shared)

    def _surroundings(self, more: Mapping[str, str], home_name: str = "home") -> tuple[dict[str, str], Path]:
        """The environment of a process, and its working directory."""
        home = self._folder / home_name
        temporary = self._folder / home_name.replace("home", "tmp")
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        return environment(home, temporary, more), home

    def _fake(self, server: Server) -> FakeServer:
        transport = server.over or self.subject.upstream
        config = self.subject.config
        if server.over and (config is None or getattr(config, server.over) is UNSET):
            raise NotPlayableError(f"Its file has no config entry for a server over {server.over}.")
        if transport != "stdio" and server.command:
            raise NotPlayableError("Its servers are on HTTP, and this one is a command.")
        try:
            fake = self._running.start(server.scenario, transport=transport)
        except ScenarioError as error:
            kind = f"over {transport}" if transport != "stdio" else "over stdio"
            raise NotPlayableError(
                f"The server of this check can't be played {kind}: {error.found}."
            ) from error
        self._fakes[server.name] = fake
        return fake

    def _prepared(
        self,
        servers: Sequence[Server],
        fakes: Sequence[FakeServer],
        *,
        home: str = "home",
        more: Mapping[str, str] | None = None,
    ) -> "_Prepared":
        """How the subject is started in front of ``servers``. home: the name of the folder that is its home;
        more: of its environment."""
        start = self.subject.start
        places = self._places(servers, fakes, home)
        own = {key: str(fill(value, places)) for key, value in start.env.items()}
        only = servers[0].env if self.subject.config is None else {}
        env, cwd = self._surroundings({**only, **own, **(more or {})}, home)
        url = str(fill(start.url, places)) if start.url else ""
        return _Prepared(fill_words(start.command, places), env, cwd, url, int(str(places.get("port", "0"))))

    def _places(self, servers: Sequence[Server], fakes: Sequence[FakeServer], home: str) -> dict[str, object]:
        places: dict[str, object] = {"python": sys.executable, "home": str(self._folder / home)}
        if self.subject.install is not None:
            places |= required(self.subject.family, self.subject.install)
        if self.subject.start.url:
            places["port"] = str(free_port())
            places |= self.values.places(str(places["port"]))
        config = self.subject.config
        if config is None:
            return places | self._only(servers, fakes)
        entries: dict[str, object] = {}
        for server, fake in zip(servers, fakes, strict=True):
            entry = getattr(config, fake.transport)
            if entry is UNSET:
                raise ControlError(f"the subject has no config entry for {fake.transport}")
            entries[server.name] = fill(as_json(entry), _entry(server, fake))
        shape = entries if config.servers == "object" else list(entries.values())
        self._configs += 1
        path = self._folder / f"config-{self._configs}" / config.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            msgspec.json.format(
                msgspec.json.encode(fill(as_json(config.template), {**places, "servers": shape}))
            )
        )
        return {**places, "config": str(path)}

    def _only(self, servers: Sequence[Server], fakes: Sequence[FakeServer]) -> dict[str, object]:
        """The values of the placeholders for the server of a subject without a config, which has only one."""
        if len(servers) != 1:
            raise ControlError("a check with several servers must need the feature several-servers")
        [server], [fake] = servers, fakes
        words = list(server.command) or fake.command
        if "scenario" not in places_in(self.subject.start.command):
            return {"upstream": words, "upstream_line": shlex.join(words), "url": fake.url}
        if server.command:
            raise NotPlayableError(
                "This subject is a fake itself, and the server of this check is a command."
            )
        try:
            server.scenario.over("http")
        except ScenarioError as error:
            raise NotPlayableError(
                f"The server of this check can't be played over http: {error.found}."
            ) from error
        return {"scenario": words[words.index("--record") - 1], "record": str(fake.record.path)}


def _entry(server: Server, fake: FakeServer) -> dict[str, object]:
    argv = list(server.command) or fake.command
    if fake.url:
        return {"name": server.name, "url": fake.url}
    env = {**fake.env, **server.env}
    return {"name": server.name, "command": argv[0], "args": argv[1:], "argv": argv, "env": env}
