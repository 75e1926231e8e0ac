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
from mcpzip_conformance.mutants.relay.bridging import SuspendedCall
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
    """A server and its connection. up: the connection, if there is one; failure: why there is none; tools:
    definitions by name, as last listed; missed: capabilities whose lists were requested while the server was
    down; suspended: calls of modern clients to this legacy server that wait for an answer."""

    def __init__(
        self, name: str, entry: Mapping[str, object], opening: Opening, link: "type[Link] | None" = None
    ) -> None:
        self.name, self.entry, self.opening = name, entry, opening
        self.up: Link | None = None
        self.failure = ""
        self.tools: dict[str, bytes] = {}
        self.missed: set[str] = set()
        self.suspended: dict[str, SuspendedCall] = {}
        self._link = link or Link
        self._starting: asyncio.Task[None] | None = None

    async def link(self) -> "Link":
        """The connection, opened (again) if need be. Raises GoneError."""
        if self._starting is None or (self._starting.done() and (self.up is None or self.up.dead)):
            self._starting = asyncio.create_task(self._start())
        try:
            await asyncio.wait_for(asyncio.shield(self._starting), STARTING)
        except TimeoutError:
            raise GoneError(f"The server {self.name} is still starting.") from None
        if self.up is None:
            raise GoneError(f"The server {self.name} can't be used: {self.failure}")
        return self.up

    async def started(self) -> bool:
        """Try to connect. Returns whether the server is up."""
        try:
            await self.link()
        except GoneError:
            return False  # `failure` says why, and the next request tries again
        return True

    async def end(self) -> None:
        """End the connection and the server's processes."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        if self.up is not None:
            await self.up.end()

    def environment(self) -> dict[str, str]:
        """The environment of the server's process."""
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
                self.failure = str(error)
                await link.end()
            except BaseException:
                await link.end()
                raise
            else:
                self.up, self.failure = link, ""
                self._tell_late(link)
                return

    def _tell_late(self, link: "Link") -> None:
        """Notify the client of changed lists if lists were given while this server was down."""
        missed, self.missed = self.missed, set()
        for capability in sorted(missed & link.capabilities.keys()):
            if self.opening.owner is not None:
                method = f"notifications/{capability}/list_changed"
                self.opening.owner.forward_notification(self.name, method, None, None, subscribed=False)


class Link(End):
    """One connection to a server. modern: its era; capabilities: those of the server; dead: whether it has
    ended."""

    def __init__(self, upstream: Upstream) -> None:
        super().__init__(Role.CLIENT)
        self.upstream, self.modern, self.dead = upstream, False, False
        self.capabilities: dict[str, bytes] = {}
        self._channel: Channel | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    async def open(self, modern: bool) -> None:
        """Connect, with the handshake of this era, or of the other if the server refuses. Raises
        RefusedError."""
        self._channel = await self.connected()
        opening = self.upstream.opening
        try:
            result = await (self._discover() if modern else self._initialize())
        except GoneError:
            raise
        except RefusedError:
            result = await (self._initialize() if modern else self._discover())
        self.capabilities = members(members(result).get("capabilities"))
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
        result = await self.request("initialize", params)
        self.notify("notifications/initialized")
        return result

    async def connected(self) -> Channel:
        """The channel to the server. Raises GoneError if it can't be reached."""
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
        """The headers of every request to a server over HTTP. None of them come from the client."""
        return {}

    async def ask(self, method: str, params: bytes | None = None) -> bytes:
        """Send a request of the relay itself. Raises RefusedError."""
        return await self.request(method, self.fitted(params))

    def fitted(self, params: bytes | None) -> bytes | None:
        """The params of a request, adapted to the server's era."""
        meta = members(members(params).get("_meta"))
        if not self.modern:
            return unstamp_request(params) if params is not None else None
        if PROTOCOL_VERSION_KEY in meta:
            return params
        return stamp_request(params, MODERN_VERSION, INFO, self.upstream.opening.capabilities)

    async def end(self) -> None:
        """Close the connection; a process is ended with its children."""
        self.dead = True
        self.close()
        if self._channel is not None:
            await self._channel.end(_LEAVING)
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()

    # What the server says

    async def handle_request(self, request: Request) -> bytes:
        """Pass the server's request to the client."""
        if request.method == "ping":
            return b"{}"
        client, about = self.origin()
        if client is None:
            raise RefusedError(RpcError(METHOD_NOT_FOUND, f"There is nobody to ask {request.method}."))
        return await pass_on(request, self, client, request.params, about)

    def handle_notification(self, method: str, params: bytes | None) -> None:
        """Pass a notification to the client, on the client's own subscription if it belongs to one."""
        subscription = members(members(params).get("_meta")).get(SUBSCRIPTION_ID_KEY, b"")
        sent = self.sent.get(int(subscription)) if subscription.isdigit() else None
        client, about = self.origin() if sent is None or sent.origin is None else sent.origin
        if client is not None:
            subscribed = sent is not None and sent.origin is not None
            client.forward_notification(self.upstream.name, method, params, about, subscribed=subscribed)

    def origin(self) -> tuple[Party | None, bytes | None]:
        """The client, and the request, that a message without a request id belongs to: the client that owns
        this connection and its latest request, otherwise the client of the only open request; None if there
        are several."""
        open = [sent.origin for sent in self.sent.values() if sent.origin is not None]
        owner = self.upstream.opening.owner
        if open and (owner is not None or len(open) == 1):
            return open[-1]
        return owner, None

    async def _listen(self) -> None:
        """Subscribe to a modern server's changes for a legacy client, which needs no subscription itself."""
        try:
            await self.ask("subscriptions/listen", join_object({"notifications": _CHANGES}))
        except RefusedError:
            pass  # then the client isn't notified

    # What goes out, and what comes in: see `Channel` and `Sink`

    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        """See `End.write`."""
        if line and self._channel is not None:
            self._channel.write(line)

    def send_cancellation(self, number: int, line: bytes) -> None:
        """See `End.send_cancellation`."""
        if self._channel is not None:
            self._channel.cancel(b"%d" % number, line)

    def line(self, raw: bytes) -> None:
        """Handle a received message."""
        self.received(raw + b"\n")

    def refused(self, id: bytes, why: str, error: bytes | None) -> None:
        """HTTP gave no answer. Unless there is an error of the server's own, the connection counts as
        ended."""
        fields = members(error)
        if error is None:
            self.dead = True
        if id.isdigit() and int(id) in self.sent:
            code = fields.get("code", b"")
            number = int(code) if code.lstrip(b"-").isdigit() else INTERNAL_ERROR
            rpc_error = RpcError(number, text(fields.get("message")) or why, fields.get("data"))
            self.fail(int(id), RefusedError(rpc_error))

    def remark(self, text: str) -> None:
        """Ignored."""

    def ended(self) -> None:
        """The connection has ended."""
        self.dead = True
        self.received(b"")
