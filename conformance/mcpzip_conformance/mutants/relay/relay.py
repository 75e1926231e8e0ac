"""The process: stdio on one side, or Streamable HTTP, and servers on the other.

The rule: it answers at once, even if its servers are not up, and ends all its processes when its client
disconnects.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mcpzip_fakes import pipes

from mcpzip_conformance.mutants.relay.http import Web
from mcpzip_conformance.mutants.relay.programs import Coder
from mcpzip_conformance.mutants.relay.search import Finder
from mcpzip_conformance.mutants.relay.session import Config, Session
from mcpzip_conformance.mutants.relay.upstream import Link, Upstream

if TYPE_CHECKING:
    from mcpzip_conformance.mutants.relay.gateway import Gateway


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that the relay is made of. names, meta, code: the client's session, with all tools, with
    three meta-tools, or with these, kept results and programs. gateway: instead of ``web``, if people have
    tokens."""

    names: type[Session] = Session
    meta: type[Finder] = Finder
    code: type[Coder] = Coder
    upstream: type[Upstream] = Upstream
    link: type[Link] = Link
    stdio: "type[Stdio] | None" = None
    web: type[Web] = Web
    gateway: "type[Gateway] | None" = None


def run(config: Path, port: int | None = None, parts: Parts | None = None) -> NoReturn:
    """Serve until the client leaves (stdio) or SIGTERM comes, then end the process. config: ``{"servers":
    {NAME: ENTRY}, "show": "names"}``, or ``"meta"``, ``"code"``; with the keys of `gateway.Team` it is a
    gateway. port: of 127.0.0.1, for Streamable HTTP."""
    settings = json.loads(config.read_bytes())
    parts = parts or Parts()
    servers = Config(settings["servers"], parts.upstream, parts.link)
    team = {key: value for key, value in settings.items() if key not in ("servers", "show")}
    session = {"names": parts.names, "meta": parts.meta, "code": parts.code}[settings["show"]]
    gc.enable()
    asyncio.run(_serve(servers, session, port, parts, team))
    sys.stderr.flush()
    os._exit(0)  # the end of the interpreter would free every object first


async def _serve(
    config: Config,
    session: type[Session],
    port: int | None,
    parts: Parts,
    team: dict[str, Any],
) -> None:
    done = asyncio.Event()
    if os.name == "posix":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    if port is None:
        await (parts.stdio or Stdio)(config, session, done).serve()
    else:
        from mcpzip_conformance.mutants.relay.sockets import served

        if not team:
            web = parts.web(config, session)
        else:
            from mcpzip_conformance.mutants.relay.gateway import Gateway, Team
            from mcpzip_conformance.mutants.relay.tokens import Access

            access, shared = Access(**team.pop("access")), Path(team.pop("shared"))
            web = (parts.gateway or Gateway)(config, session, Team(access, shared, **team), port)
        await served(web, port, done)
        await web.end()


class Stdio:
    """One client, on stdin and stdout."""

    def __init__(self, config: Config, session: type[Session], done: asyncio.Event) -> None:
        self._output = pipes.Output(1, asyncio.get_running_loop())
        self.session = session(config, self.write)
        self.done = done

    async def serve(self) -> None:
        """Serve the client from the first byte to the last."""
        pipes.read(0, asyncio.get_running_loop(), self.received)
        await self.done.wait()
        await self.session.end()

    def write(self, line: bytes, about: bytes | None, last: bool) -> None:
        """See `Write`."""
        try:
            self._output.write(line)
        except BrokenPipeError:
            self.done.set()

    def received(self, data: bytes) -> None:
        """Handle bytes of the client; b"" is the end."""
        if data:
            self.session.received(data)
        else:
            self.done.set()
