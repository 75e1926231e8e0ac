"""The connection to a server.

The rule: it is started when its client opens, and again by the next request after it has ended; a request
that was open then is never sent again. It gets only the environment of its config, and it ends with the
relay, however that ends.
"""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mcpzip.wire import (
    INTERNAL_ERROR,
    LATEST_LEGACY_VERSION,
    METHOD_NOT_FOUND,
    MODERN_VERSION,
    PROTOCOL_VERSION_KEY,
    SUBSCRIPTION_ID_KEY,
    Request,
    Role,
    RpcError,
    initialize_params,
    join_object,
    stamp_request,
    unstamp_request,
)
from mcpzip_conformance.channel import Channel
from mcpzip_conformance.channel.stdio import StdioChannel
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.mutants.relay.bridging import Parked
from mcpzip_conformance.mutants.relay.end import End, GoneError, Party, RefusedError, pass_on
from mcpzip_conformance.mutants.relay.guard import guard
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.opening import INFO, Opening

KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "USERPROFILE", "SYSTEMROOT", "TEMP", "TMP")
STARTING = 8.0
"""Seconds a request waits for its server to be up."""
_LEAVING = 0.5
_CHANGES = b'{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}'


class Upstream:
    """A server and how it is reached. up: its connection while there is one; trouble: why there is none;
    tools: its definitions by name, as last listed; missed: the capabilities whose lists were wanted while it
    couldn't be asked; parked: calls of a modern client to a legacy server that wait for an answer."""

    def __init__(
        self, name: str, entry: Mapping[str, object], opening: Opening, link: "type[Link] | None" = None
    ) -> None:
        self.name, self.entry, self.opening = name, entry, opening
        self.up: Link | None = None
        self.trouble = ""
        self.tools: dict[str, bytes] = {}
        self.missed: set[str] = set()
        self.parked: dict[str, Parked] = {}
        self._link = link or Link
        self._starting: asyncio.Task[None] | None = None

    async def link(self) -> "Link":
        """Its connection, made (again) if need be. GoneError."""
        if self._starting is None or (self._starting.done() and (self.up is None or self.up.dead)):
            self._starting = asyncio.create_task(self._start())
        try:
            await asyncio.wait_for(asyncio.shield(self._starting), STARTING)
        except TimeoutError:
            raise GoneError(f"The server {self.name} is still starting.") from None
        if self.up is None:
            raise GoneError(f"The server {self.name} can't be used: {self.trouble}")
        return self.up

    async def started(self) -> bool:
        """Try; whether it is up."""
        try:
            await self.link()
        except GoneError:
            return False  # `trouble` says why, and the next request tries again
        return True

    async def end(self) -> None:
        """End it and what it started."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self.up is not None:
            await self.up.end()

    def environment(self) -> dict[str, str]:
        """What it finds in its environment."""
        given = self.entry.get("env")
        own = given if isinstance(given, dict) else {}
        return {key: os.environ[key] for key in KEPT if key in os.environ} | own

    async def _start(self) -> None:
        old, self.up, self.tools = self.up, None, {}
        if old is not None:
            await old.end()
        # A legacy server may leave when it is spoken to in modern words: it gets a second chance.
        for modern in (True, False) if self.opening.modern else (False,):
            link = self._link(self)
            try:
                await link.open(modern)
            except RefusedError as error:
                self.trouble = str(error)
                await link.end()
            except BaseException:
                await link.end()
                raise
            else:
                self.up, self.trouble = link, ""
                self._tell_late(link)
                return

    def _tell_late(self, link: "Link") -> None:
        """Lists were given without it, and now it is there."""
        missed, self.missed = self.missed, set()
        for capability in sorted(missed & link.capabilities.keys()):
            if self.opening.owner is not None:
                method = f"notifications/{capability}/list_changed"
                self.opening.owner.heard(self.name, method, None, None, subscribed=False)


class Link(End):
    """One connection to a server. modern: the era it is spoken in; capabilities: what the server offers;
    dead: it has ended."""

    def __init__(self, upstream: Upstream) -> None:
        super().__init__(Role.CLIENT)
        self.upstream, self.modern, self.dead = upstream, False, False
        self.capabilities: dict[str, bytes] = {}
        self._channel: Channel | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    async def open(self, modern: bool) -> None:
        """Connect, and shake hands in this era, or the other if the server refuses. RefusedError."""
        self._channel = await self.connected()
        opening = self.upstream.opening
        try:
            said = await (self._discover() if modern else self._initialize())
        except GoneError:
            raise
        except RefusedError:
            said = await (self._initialize() if modern else self._discover())
        self.capabilities = members(members(said).get("capabilities"))
        if opening.level is not None and "logging" in self.capabilities:
            await self.ask("logging/setLevel", opening.level)
        if self.modern and not opening.modern:
            self.run(self._listen())

    async def _discover(self) -> bytes:
        self.modern = True
        return await self.ask("server/discover")

    async def _initialize(self) -> bytes:
        self.modern, opening = False, self.upstream.opening
        params = opening.params
        if opening.modern:
            params = initialize_params(LATEST_LEGACY_VERSION, INFO, opening.capabilities)
        said = await self.request("initialize", params)
        self.notify("notifications/initialized")
        return said

    async def connected(self) -> Channel:
        """The way to the server. GoneError when there is none."""
        entry = self.upstream.entry
        if "url" in entry:
            from mcpzip_conformance.channel.http import HttpChannel  # only who needs it pays for httpx

            return HttpChannel(str(entry["url"]), None, self, headers=self.headers())
        arguments = entry.get("args")
        command = [str(entry["command"]), *map(str, arguments if isinstance(arguments, list) else ())]
        try:
            channel = await StdioChannel.start(command, self, env=self.upstream.environment(), cwd=Path.cwd())
        except Finding as finding:
            raise GoneError(finding.summary.rstrip(".")) from finding
        self._guard = guard(channel.process.pid)
        return channel

    def headers(self) -> dict[str, str]:
        """What is sent to a server over HTTP with every request: nothing of the client's."""
        return {}

    async def ask(self, method: str, params: bytes | None = None) -> bytes:
        """A request of our own. RefusedError."""
        return await self.request(method, self.fitted(params))

    def fitted(self, params: bytes | None) -> bytes | None:
        """The params of a request as this server's era has them."""
        meta = members(members(params).get("_meta"))
        if not self.modern:
            return unstamp_request(params) if params is not None else None
        if PROTOCOL_VERSION_KEY in meta:
            return params
        return stamp_request(params, MODERN_VERSION, INFO, self.upstream.opening.capabilities)

    async def end(self) -> None:
        """Leave; a process is ended with what it started."""
        self.dead = True
        self.close()
        if self._channel is not None:
            await self._channel.end(_LEAVING)
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()

    # What the server says

    async def asked(self, request: Request) -> bytes:
        """A question is the client's to answer."""
        if request.method == "ping":
            return b"{}"
        client, about = self.home()
        if client is None:
            raise RefusedError(RpcError(METHOD_NOT_FOUND, f"There is nobody to ask {request.method}."))
        return await pass_on(request, self, client, request.params, about)

    def told(self, method: str, params: bytes | None) -> None:
        """News are the client's to hear; those of a subscription under the id of its own."""
        subscription = members(members(params).get("_meta")).get(SUBSCRIPTION_ID_KEY, b"")
        sent = self.sent.get(int(subscription)) if subscription.isdigit() else None
        client, about = self.home() if sent is None or sent.home is None else sent.home
        if client is not None:
            subscribed = sent is not None and sent.home is not None
            client.heard(self.upstream.name, method, params, about, subscribed=subscribed)

    def home(self) -> tuple[Party | None, bytes | None]:
        """Whose a message is that names no request: the client's that has us for itself, and then of its
        latest request; else of the one request there is, and nobody's when there are several."""
        open = [sent.home for sent in self.sent.values() if sent.home is not None]
        owner = self.upstream.opening.owner
        if open and (owner is not None or len(open) == 1):
            return open[-1]
        return owner, None

    async def _listen(self) -> None:
        """A legacy client hears of changes unasked; a modern server wants to be asked."""
        try:
            await self.ask("subscriptions/listen", join_object({"notifications": _CHANGES}))
        except RefusedError:
            pass  # then nobody hears of them

    # What goes out, and what comes in: see `Channel` and `Sink`

    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        """See `End.write`."""
        if line and self._channel is not None:
            self._channel.write(line)

    def take_back(self, number: int, line: bytes) -> None:
        """See `End.take_back`."""
        if self._channel is not None:
            self._channel.cancel(b"%d" % number, line)

    def line(self, raw: bytes) -> None:
        """A message."""
        self.received(raw + b"\n")

    def refused(self, id: bytes, why: str, error: bytes | None) -> None:
        """HTTP gave no answer; without an error of the server's own the connection is of no use any more."""
        fields = members(error)
        if error is None:
            self.dead = True
        if id.isdigit() and int(id) in self.sent:
            code = fields.get("code", b"")
            number = int(code) if code.lstrip(b"-").isdigit() else INTERNAL_ERROR
            told = RpcError(number, text(fields.get("message")) or why, fields.get("data"))
            self.fail(int(id), RefusedError(told))

    def remark(self, text: str) -> None:
        """Nobody reads it."""

    def ended(self) -> None:
        """It has ended."""
        self.dead = True
        self.received(b"")
