"""The proxy of the runner's own tests: right, or wrong in one way (`faults`).

The rule: it is as small as a proxy can be that passes every check. It speaks legacy MCP over stdio, shows the
tools of N stdio servers as ``server__tool`` (mode ``names``) or behind ``find``, ``show`` and ``run`` (mode
``meta``).
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path

import msgspec

from conformance.mutants.faults import FAULTS, Fault
from conformance.mutants.upstream import RefusedError, ServerGoneError, Upstream
from fakes import pipes
from mcpzip.wire import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Invalid,
    NotAnObject,
    Notification,
    Peer,
    Request,
    Role,
    join_object,
    negotiate,
    quote,
    split_object,
    with_members,
)

SEPARATOR = "__"
_ANY = {"type": "object"}
META_TOOLS = json.dumps(
    {"tools": [{"name": name, "description": "", "inputSchema": _ANY} for name in ("find", "show", "run")]}
).encode()


class AnswerError(Exception):
    """A request to be answered with this error object (JSON text)."""

    def __init__(self, code: int, message: str) -> None:
        self.raw = json.dumps({"code": code, "message": message}).encode()
        super().__init__(message)


class Relay:
    """One client and its servers."""

    def __init__(self, config: Path, mode: str, fault: str = "") -> None:
        self._meta, self._name, self._fault = mode == "meta", fault, FAULTS.get(fault, Fault("", ""))
        servers = json.loads(config.read_bytes())["servers"]
        every = {key: value for entry in servers.values() for key, value in entry["env"].items()}
        self._servers = {
            name: Upstream(name, entry, every if self._has("shares-environment") else entry["env"], self._has)
            for name, entry in servers.items()
        }
        self._peer = Peer(role=Role.SERVER)
        self._tasks: set[asyncio.Task[None]] = set()
        self._queue: list[bytes] = []
        self._turn = asyncio.Lock()
        self.done = asyncio.Event()

    def _has(self, fault: str) -> bool:
        return self._name == fault

    async def serve(self) -> None:
        """From the first byte to the last."""
        loop = asyncio.get_running_loop()
        self._output = pipes.Output(1, loop)
        if os.name == "posix":
            loop.add_signal_handler(signal.SIGTERM, self.done.set)
        if self._has("logs-to-stdout"):
            self._output.write(b"relay 1.0 listening on stdio\n")
        for upstream in self._servers.values():
            self._spawn(self._open(upstream))
        pipes.read(0, loop, self._received)
        await self.done.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(upstream.end() for upstream in self._servers.values()))

    async def _open(self, upstream: Upstream) -> None:
        try:
            await upstream.ready()
        except ServerGoneError:
            if self._has("all-or-none"):
                self.done.set()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The client's messages

    def _received(self, data: bytes) -> None:
        if not data and not self._has("stays"):
            self.done.set()
        for event in self._peer.receive(data):
            match event:
                case Request():
                    self._queue.append(event.id)
                    self._spawn(self._request(event))
                case Invalid() if self._has("dies-of-junk"):
                    os._exit(1)
                case Invalid():
                    self._write(self._peer.error(event.id, event.code, event.message))
                case Notification() if self._has("answers-notifications"):
                    self._write(b'{"jsonrpc":"2.0","id":null,"result":{}}\n')
                case _:
                    pass  # initialized; a cancelled call runs on, which is allowed

    async def _request(self, request: Request) -> None:
        try:
            if self._has("one-at-a-time"):
                async with self._turn:
                    answer = b'"result":' + await self._result(request)
            else:
                answer = b'"result":' + await self._result(request)
        except (AnswerError, RefusedError) as error:
            answer = b'"error":' + error.raw
        self._peer.result(request.id, b"{}")  # it is answered: the id is free again
        id = self._answered_id(request)
        line = b'{"jsonrpc":"2.0","id":%b,%b}\n' % (id, answer)
        self._write(line * (2 if self._has("answers-twice") else 1))

    def _answered_id(self, request: Request) -> bytes:
        """The request's own id, unless that is what is wrong."""
        id = request.id
        if self._has("mixes-answers") and request.method == "tools/call":
            id = self._queue[0]
        self._queue.remove(id)
        if self._has("spells-ids") and not id.startswith(b'"'):
            return b'"%b"' % id
        return id

    def _write(self, line: bytes) -> None:
        try:
            self._output.write(line)
        except BrokenPipeError:
            self.done.set()

    async def _result(self, request: Request) -> bytes:
        params = _members(request.params)
        match request.method:
            case "initialize":
                if self._has("waits-for-all"):
                    await asyncio.gather(*(self._open(upstream) for upstream in self._servers.values()))
                return self._greeting(params)
            case "ping":
                return b"{}"
            case "tools/list":
                return META_TOOLS if self._meta else self._listing()
            case "tools/call":
                return await self._called(params)
            case _ if self._has("answers-anything"):
                return b"{}"
            case _:
                raise AnswerError(METHOD_NOT_FOUND, f"There is no method {request.method!r}.")

    @staticmethod
    def _greeting(params: dict[str, bytes]) -> bytes:
        asked = _text(params.get("protocolVersion"))
        info = b'{"name":"relay","version":"1"}'
        told = {
            "protocolVersion": quote(negotiate(asked)),
            "capabilities": b'{"tools":{}}',
            "serverInfo": info,
        }
        return join_object(told)

    def _listing(self) -> bytes:
        shown = []
        for upstream in self._servers.values():
            for tool, raw in upstream.tools.items():
                definition = with_members(raw, {"name": quote(upstream.name + SEPARATOR + tool)})
                if self._has("loses-annotations"):
                    fields = split_object(definition)
                    fields.pop("annotations", None)
                    definition = join_object(fields)
                shown.append(definition)
        return b'{"tools":[%b]}' % b",".join(shown)

    # Calls

    async def _called(self, params: dict[str, bytes]) -> bytes:
        if "name" not in params:
            raise AnswerError(INVALID_PARAMS, "A call has a name.")
        name, arguments = _text(params["name"]), params.get("arguments", b"{}")
        if not self._meta:
            return await self._run(name, arguments, params.get("_meta"))
        given = _members(arguments)
        match name:
            case "find":
                return _said(await self._find(_text(given.get("query")), given.get("limit")))
            case "show":
                server, _, tool = _text(given.get("tool")).partition(SEPARATOR)
                raw = self._servers[server].tools[tool] if server in self._servers else b"{}"
                return _said(with_members(raw, {"name": given["tool"]}).decode())
            case "run":
                read = self._arguments(given)
                if read is None:
                    return _said("The arguments are no JSON object: put one under 'arguments'.", failed=True)
                return await self._run(_text(given.get("tool")), read, params.get("_meta"))
            case _:
                raise AnswerError(INVALID_PARAMS, f"There is no tool {name!r}.")

    def _arguments(self, given: dict[str, bytes]) -> bytes | None:
        """The arguments of ``run``: an object, JSON text of one, null, or beside the tool's name."""
        flat = {key: value for key, value in given.items() if key not in ("tool", "arguments")}
        raw = given.get("arguments", b"{}" if not flat or self._has("drops-flat") else join_object(flat))
        if raw.startswith(b'"') and self._has("drops-text"):
            return b"{}"
        while raw.startswith(b'"'):
            raw = _text(raw).encode()
        if raw == b"null":
            return b"{}"
        try:
            split_object(raw)
        except NotAnObject:
            return None
        return raw

    async def _run(self, shown: str, arguments: bytes, meta: bytes | None) -> bytes:
        server, _, tool = shown.partition(SEPARATOR)
        upstream = self._servers.get(server)
        if upstream is None:
            return _said(f"There is no tool {shown!r}; there are {', '.join(self._shown())}.", failed=True)
        try:
            await asyncio.wait_for(upstream.ready(), 8)
            if tool not in upstream.tools:
                return _said(
                    f"There is no tool {shown!r}; there are {', '.join(self._shown())}.", failed=True
                )
            return await self._passed(upstream, self._params(tool, arguments, meta))
        except (ServerGoneError, TimeoutError) as error:
            secret = f" Its environment: {upstream.env}" if self._has("tells-secrets") else ""
            return _said((str(error) or "It is still starting.") + secret, failed=True)

    def _params(self, tool: str, arguments: bytes, meta: bytes | None) -> bytes:
        spoil = self._fault.arguments
        if spoil is not None and arguments.startswith(b"{"):
            arguments = msgspec.json.encode(spoil(json.loads(arguments)))
        fields = {"name": quote(tool), "arguments": arguments}
        if meta is not None and not self._has("drops-request-meta"):
            fields["_meta"] = meta
        return join_object(fields)

    async def _passed(self, upstream: Upstream, params: bytes) -> bytes:
        if self._has("broadcasts"):
            for other in self._servers.values():
                if other is not upstream and other.tools:
                    self._spawn(self._also(other, params))
        if self._has("runs-twice"):
            await upstream.request("tools/call", params)
        try:
            result = await upstream.request("tools/call", params)
        except ServerGoneError:
            if not self._has("retries"):
                raise
            await upstream.ready()
            result = await upstream.request("tools/call", params)
        except RefusedError as error:
            if not self._has("hides-errors"):
                raise
            return _said(error.raw.decode(), failed=True)
        spoil = self._fault.result
        return result if spoil is None else json.dumps(spoil(json.loads(result))).encode()

    @staticmethod
    async def _also(upstream: Upstream, params: bytes) -> None:
        try:
            await upstream.request("tools/call", params)
        except (ServerGoneError, RefusedError):
            pass  # nobody asked for it

    # Search

    def _shown(self) -> list[str]:
        return [
            name + SEPARATOR + tool for name, upstream in self._servers.items() for tool in upstream.tools
        ]

    async def _find(self, query: str, limit: bytes | None) -> str:
        ranked = sorted((-self._score(query, shown), shown) for shown in self._shown())
        found = [shown for score, shown in ranked if score < 0]
        if self._has("ranks-by-name"):
            found.sort()
        if limit is not None and not self._has("ignores-limit"):
            found = found[: int(limit)]
        lines = [f"{shown}: {self._described(shown)}" for shown in found]
        lines += [] if found else ["" if self._has("says-nothing") else "Nothing matches; try other words."]
        lines += [f"({name} is down)" for name, upstream in self._servers.items() if upstream.trouble]
        return "\n".join(lines)

    def _score(self, query: str, shown: str) -> int:
        """Words of the query in the name count three times those in the description only."""
        if query in (shown, shown.partition(SEPARATOR)[2]):
            return 1000
        named, told = _words(shown), _words(self._described(shown))
        return sum(3 if word in named else word in told for word in _words(query))

    def _described(self, shown: str) -> str:
        server, _, tool = shown.partition(SEPARATOR)
        return _text(split_object(self._servers[server].tools[tool]).get("description"))


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall("[a-z0-9]+", text.lower())}


def _members(raw: bytes | None) -> dict[str, bytes]:
    try:
        return split_object(raw or b"{}")
    except NotAnObject:
        return {}


def _text(raw: bytes | None) -> str:
    value = json.loads(raw or b'""')
    return value if isinstance(value, str) else ""


def _said(text: str, *, failed: bool = False) -> bytes:
    result: dict[str, object] = {"content": [{"type": "text", "text": text}]}
    return json.dumps(result | ({"isError": True} if failed else {})).encode()


async def _main(config: str, mode: str, fault: str = "") -> None:
    await Relay(Path(config), mode, fault).serve()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
