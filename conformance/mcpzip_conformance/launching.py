"""How the processes of one check are started: fakes, and the subject before them.

The rule: each process of the subject has a home and a config of its own, and one that is started again has
the same ones. A `Change` is written into that config.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.launch import Fakes, FakeServer
from msgspec import UNSET

from mcpzip_conformance.check_values import CheckValues
from mcpzip_conformance.declaration import Change
from mcpzip_conformance.errors import ControlError, NotPlayableError
from mcpzip_conformance.http_subject import Listening, free_port
from mcpzip_conformance.installation import required
from mcpzip_conformance.player import TO_START
from mcpzip_conformance.processes import environment
from mcpzip_conformance.scene import Server
from mcpzip_conformance.subject import Subject
from mcpzip_conformance.template import as_json, fill, fill_words, places_in
from mcpzip_conformance.variants import merged


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a process of the subject is started. url: "" for stdio; port: of a subject on HTTP; places: the
    values of its placeholders."""

    command: list[str]
    env: dict[str, str]
    cwd: Path
    url: str
    port: int
    places: Mapping[str, object]


class Launcher:
    """Starts the processes of one check. folder: of the check; values: those that its processes share;
    patience: seconds to wait for a message."""

    def __init__(self, subject: Subject, folder: Path, values: CheckValues, patience: float) -> None:
        self._subject, self._folder, self._values, self._patience = subject, folder, values, patience
        self._fakes = Fakes(folder / "fakes")
        self._configs = 0

    def stop(self) -> None:
        """Stop the fakes."""
        self._fakes.stop()

    def fake(self, server: Server) -> FakeServer:
        """Start ``server``, on HTTP, or have its command. Raises NotPlayableError."""
        transport = server.over or self._subject.upstream
        config = self._subject.config
        if server.over and (config is None or getattr(config, server.over) is UNSET):
            raise NotPlayableError(f"Its file has no config entry for a server over {server.over}.")
        if transport != "stdio" and server.command:
            raise NotPlayableError("Its servers are on HTTP, and this one is a command.")
        try:
            return self._fakes.start(server.scenario, transport=transport)
        except ScenarioError as error:
            kind = f"over {transport}" if transport != "stdio" else "over stdio"
            raise NotPlayableError(
                f"The server of this check can't be played {kind}: {error.found}."
            ) from error

    def prepared(
        self,
        servers: Sequence[Server],
        fakes: Sequence[FakeServer],
        *,
        home: str = "home",
        more: Mapping[str, str] | None = None,
    ) -> Prepared:
        """How the subject is started in front of ``servers``. home: the name of the folder that is its home;
        more: of its environment."""
        start = self._subject.start
        places = self._places(servers, fakes, home)
        own = {key: str(fill(value, places)) for key, value in start.env.items()}
        only = servers[0].env if self._subject.config is None else {}
        env, cwd = self.surroundings({**only, **own, **(more or {})}, home)
        url = str(fill(start.url, places)) if start.url else ""
        port = int(str(places.get("port", "0")))
        return Prepared(fill_words(start.command, places), env, cwd, url, port, places)

    def changed(self, prepared: Prepared, change: Change | None) -> Prepared:
        """The same process with this change, or as it was for None; its config is written anew."""
        config = self._subject.config
        if config is not None:
            template = as_json(config.template)
            if change is not None and change.config:
                template = merged(template if isinstance(template, dict) else {}, change.config)
            _write(Path(str(prepared.places["config"])), fill(template, prepared.places))
        if change is None:
            return prepared
        own = {key: str(fill(value, prepared.places)) for key, value in change.env.items()}
        command = fill_words(change.command, prepared.places) if change.command else prepared.command
        return replace(prepared, command=command, env={**prepared.env, **own})

    async def listening(self, prepared: Prepared) -> Listening:
        """Start a subject on HTTP, and wait until it is up. Raises Finding."""
        return await Listening.start(
            prepared.command,
            env=prepared.env,
            cwd=prepared.cwd,
            url=prepared.url,
            up=self._subject.start.up,
            port=prepared.port,
            patience=self._patience * TO_START,
        )

    def surroundings(self, more: Mapping[str, str], home_name: str = "home") -> tuple[dict[str, str], Path]:
        """The environment of a process, and its working directory."""
        home = self._folder / home_name
        temporary = self._folder / home_name.replace("home", "tmp")
        for folder in (home, temporary):
            folder.mkdir(exist_ok=True)
        return environment(home, temporary, more), home

    def _places(self, servers: Sequence[Server], fakes: Sequence[FakeServer], home: str) -> dict[str, object]:
        places: dict[str, object] = {"python": sys.executable, "home": str(self._folder / home)}
        if self._subject.install is not None:
            places |= required(self._subject.family, self._subject.install)
        if self._subject.start.url:
            places["port"] = str(free_port())
            places |= self._values.places(str(places["port"]))
        config = self._subject.config
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
        places |= {"servers": shape, "config": str(path)}
        _write(path, fill(as_json(config.template), places))
        return places

    def _only(self, servers: Sequence[Server], fakes: Sequence[FakeServer]) -> dict[str, object]:
        """The values of the placeholders for the server of a subject without a config, which has only one."""
        if len(servers) != 1:
            raise ControlError("a check with several servers must need the feature several-servers")
        [server], [fake] = servers, fakes
        words = list(server.command) or fake.command
        if "scenario" not in places_in(self._subject.start.command):
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


def _write(path: Path, config: object) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(config)))


def _entry(server: Server, fake: FakeServer) -> dict[str, object]:
    argv = list(server.command) or fake.command
    if fake.url:
        return {"name": server.name, "url": fake.url}
    env = {**fake.env, **server.env}
    return {"name": server.name, "command": argv[0], "args": argv[1:], "argv": argv, "env": env}
