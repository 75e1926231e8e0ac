"""A subject in a folder of its own: its home, its config, its upstreams, and its processes.

The rule: nothing that was started here is left when `running` ends, whatever happened.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from mcpzip_conformance.processes import environment
from mcpzip_conformance.template import as_json, fill, fill_words

from bench.client import Client, GoneError, RefusedError
from bench.daemons import Daemon, end_all, processes_of
from bench.processes import resident_bytes, thread_seconds
from bench.subjects import UPSTREAM, upstream_argv
from bench.suite.figures import SERVERS, TOOLS
from bench.suite.subjects import RUNNING, Subject
from bench.upstream import name_of

_AGAIN = 0.01
"""Seconds after which a subject that doesn't yet know a tool is asked again."""


_SAID = "said back"


@dataclass(frozen=True)
class Setup:
    """The upstreams: how many, and the tools on all of them together. wait: seconds until each reads; hung:
    one more, which never answers."""

    tools: int = TOOLS
    servers: int = SERVERS
    wait: float = 0.0
    hung: bool = False


class Place:
    """``subject`` with the upstreams of ``setup``. python: the upstreams' interpreter; patience: seconds from
    a spawn after which it is no longer waited for."""

    def __init__(self, folder: Path, subject: Subject, setup: Setup, python: str, patience: float) -> None:
        self.folder, self.subject, self.setup, self.patience = folder, subject, setup, patience
        self.alone = setup.servers == 1 and not setup.hung
        self.each = setup.tools // setup.servers
        self._config = folder / "config.json"
        home, temporary = folder / "home", folder / "tmp"
        for each in (home, temporary):
            each.mkdir(parents=True, exist_ok=True)
        self._home = home
        # Not the importable path of the conformance runner: subjects have environments of their own.
        kept = {
            name: value for name, value in environment(home, temporary, {}).items() if name != "PYTHONPATH"
        }
        argvs = {
            f"up{number}": upstream_argv(python, seed=number, tools=self.each, wait=setup.wait)
            for number in range(setup.servers)
        }
        if setup.hung:
            argvs["hung"] = upstream_argv(python, silent_while=folder)
        self._upstream = " ".join([python, "-I", "-S", UPSTREAM])
        if subject.declared is None:
            self._argv, self.env = list(subject.argv), kept
            return
        places: dict[str, object] = {"python": python, "home": str(home), "upstream": argvs["up0"]}
        if subject.declared.install is not None:
            from mcpzip_conformance.installation import required

            places |= required(subject.declared.family, subject.declared.install)
        if subject.declared.config is not None:
            places["config"] = str(self._configure(argvs))
        self._argv = fill_words(subject.declared.start.command, places)
        own = {name: str(fill(value, places)) for name, value in subject.declared.start.env.items()}
        self.env = {**kept, **own}

    def _configure(self, argvs: dict[str, list[str]]) -> Path:
        assert self.subject.declared is not None
        config = self.subject.declared.config
        assert config is not None
        entries = {
            name: fill(
                as_json(config.stdio),
                {"name": name, "command": argv[0], "args": argv[1:], "argv": argv, "env": {}},
            )
            for name, argv in argvs.items()
        }
        shape = entries if config.servers == "object" else list(entries.values())
        self._config = self.folder / config.file
        self._config.parent.mkdir(parents=True, exist_ok=True)
        self._config.write_bytes(msgspec.json.encode(fill(as_json(config.template), {"servers": shape})))
        return self._config

    @contextmanager
    def running(self, clients: int = 1) -> Iterator[list[Client]]:
        """So many processes of the subject, each with a client, before the handshake. Where the daemon is to
        run already, one more client has made it know all tools."""
        try:
            with ExitStack() as stack:
                if self.subject.key == RUNNING:
                    first = stack.enter_context(self.opened())
                    first.initialize()
                    self.find(first, 0)
                    self.echo(first)
                yield [stack.enter_context(self.opened()) for _ in range(clients)]
        finally:
            if self.subject.daemon:
                Daemon(self._config).stop()
            end_all(self.folder)

    def opened(self) -> Client:
        """One more process of the subject."""
        return Client(self._argv, self.env, cwd=self._home, patience=self.patience)

    def find(self, client: Client, number: int) -> None:
        """Searches until tool ``number`` is found, as an agent would. Raises GoneError."""
        wanted = name_of(number)
        self._until(client, self.subject.find(self._server_of(number), wanted, alone=self.alone), wanted)

    def echo(self, client: Client) -> None:
        """Calls until a tool of the first upstream answers. Raises GoneError."""
        self._until(client, self.params("echo", {"payload": _SAID}), _SAID)

    def _until(self, client: Client, params: object, wanted: str) -> None:
        """Makes a call until its result contains ``wanted``: a proxy that doesn't know a tool yet may say so
        in a result, too."""
        while True:
            try:
                if wanted in json.dumps(client.call(params)):
                    return
            except GoneError:
                raise
            except RefusedError:
                pass
            if client.elapsed() > self.patience:
                raise GoneError(f"it did not know a tool within {self.patience:.0f} s")
            time.sleep(_AGAIN)

    def search(self, client: Client, number: int) -> None:
        """One search for tool ``number``, whatever it finds."""
        client.call(self.subject.find(self._server_of(number), name_of(number), alone=self.alone))

    def params(self, tool: str, arguments: dict[str, object]) -> object:
        """The params of a call of a tool that every upstream has, of the first one."""
        return self.subject.call("up0", tool, arguments, alone=self.alone)

    def _server_of(self, number: int) -> str:
        return f"up{number // self.each}"

    def own_processes(self) -> list[int]:
        """The running processes of the subject without its upstreams, by process id."""
        return [
            pid
            for pid, command in processes_of(self.folder).items()
            if not command.startswith(self._upstream) and pid != os.getpid()
        ]

    def resident(self) -> int:
        """Resident bytes of `own_processes` together."""
        return sum(resident_bytes(pid) or 0 for pid in self.own_processes())

    def busy(self) -> dict[int, float]:
        """Processor seconds so far of each thread of `own_processes`, by its id."""
        every: dict[int, float] = {}
        for pid in self.own_processes():
            every |= thread_seconds(pid) or {}
        return every
