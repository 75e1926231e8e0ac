"""Faults that let hostile servers do harm."""

import json
import time
from collections.abc import Mapping

import httpx

from mcpzip.wire import INVALID_PARAMS, Event, LineFramer, Request, RpcError, quote, with_members
from mcpzip_conformance.channel import Channel
from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.channel.stdio import StdioChannel
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.listing import listed
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.search import Finder
from mcpzip_conformance.mutants.relay.session import Servers, Session
from mcpzip_conformance.mutants.relay.upstream import Link


class Rescans(Link):
    """Searches all buffered bytes for the end of the line whenever bytes arrive."""

    async def connected(self) -> Channel:
        channel = await super().connected()
        if not isinstance(channel, StdioChannel):
            return channel
        received, had = channel.process._received, b""

        def gathered(data: bytes) -> None:
            nonlocal had
            had = had + data
            if b"\n" in had or not data:
                received(had)
                had = b""
                if not data:
                    received(b"")

        channel.process._received = gathered
        return channel


class RescansBodies(Link):
    """As `Rescans`, for bodies and events."""

    async def connected(self) -> Channel:
        channel = await super().connected()
        if isinstance(channel, HttpChannel):
            channel.__class__ = _Rescanning
        return channel


class _Rescanning(HttpChannel):
    async def _read(self, response: httpx.Response, asked: bytes | None, *rest: object) -> bool:
        if asked is None:
            return await super()._read(response, asked)
        had = b""
        async for piece in response.aiter_bytes(1 << 16):
            had = had + piece
            if b"\r\n\r\n" in had[-4:]:
                break
        lines = [line.removeprefix(b"data: ") for line in had.splitlines() if b'"jsonrpc"' in line]
        answered = [self._take(line, asked) for line in lines]
        return any(answered)


class HoldsAll(Link):
    """Has no size limit for messages."""

    async def connected(self) -> Channel:
        channel = await super().connected()
        if isinstance(channel, StdioChannel):
            channel._framer = LineFramer(1 << 40)
        elif isinstance(channel, HttpChannel):
            channel.__class__ = _Holding
        return channel


class _Holding(HttpChannel):
    async def _read(self, response: httpx.Response, asked: bytes | None, *rest: object) -> bool:
        if asked is None:
            return await super()._read(response, asked)
        body = await response.aread()
        lines = [line.removeprefix(b"data: ") for line in body.splitlines() if b'"jsonrpc"' in line]
        answered = [self._take(line, asked) for line in lines]
        return any(answered)


class ReadsSchemas(Finder):
    """Searches every word of a schema, references followed."""

    async def find(self, servers: Servers, query: str, limit: bytes | None) -> str:
        for upstream in servers.by_name.values():
            for raw in await listed(upstream, "tools/list"):
                schema = json.loads(raw).get("inputSchema", {})
                for one in schema.get("properties", {}).values():
                    target = schema.get("$defs", {}).get(str(one.get("$ref")).rpartition("/")[2], {})
                    " ".join(json.dumps(value) for value in target.get("enum", ()))
        return await super().find(servers, query, limit)


class ReadsEveryPage(Session):
    async def tools(self, servers: Servers) -> bytes:
        for upstream in servers.by_name.values():
            params, last = None, upstream.up is None
            while not last and upstream.up is not None:
                try:
                    page = members(await upstream.up.ask("tools/list", params))
                except RefusedError:
                    break
                last = page.get("nextCursor", b"null") == b"null"
                params = b'{"cursor":%b}' % page.get("nextCursor", b"null")
        return await super().tools(servers)


class SaysNamesBack(Session):
    async def called(self, request: Request, servers: Servers) -> bytes:
        try:
            return await super().called(request, servers)
        except RefusedError as refused:
            error = refused.error
            if error.code != INVALID_PARAMS:  # it isn't about the name
                raise
            name = text(members(request.params).get("name"))
            raise RefusedError(RpcError(error.code, f"{error.message} It was {name}.", error.data)) from None


class WritesSlowly(Link):
    """Spends time on each message before it reads the next, as a proxy that logs them."""

    def event(self, event: Event) -> None:
        time.sleep(0.05)
        super().event(event)


class DropsSurrogates(Link):
    def line(self, raw: bytes) -> None:
        if rb"\ud800" not in raw:
            super().line(raw)


def _folded(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


class RunsElsewhere(Session):
    """Looks for an unknown tool at all servers. folded: names are equal if their letters and digits are."""

    folded = True

    async def called(self, request: Request, servers: Servers) -> bytes:
        try:
            return await super().called(request, servers)
        except RefusedError:
            name = text(members(request.params).get("name"))
            for upstream in servers.by_name.values():
                for own in [text(members(raw).get("name")) for raw in await listed(upstream, "tools/list")]:
                    if _folded(own) == _folded(name) if self.folded else own == name:
                        params = with_members(request.params or b"{}", {"name": quote(own)})
                        return await self.run_tool(request, upstream, params)
            raise


class RunsBareNames(RunsElsewhere):
    folded = False


class ForgetsLinks(Session):
    def linked(self, server: str, result: bytes) -> None:
        pass


FAULTS: Mapping[str, Fault] = {
    "rescans": Fault(
        "looks through a whole line for its end whenever more of it comes",
        "resilience.endless-answer",
        Parts(link=Rescans),
    ),
    "rescans-events": Fault(
        "copies all that it has of an HTTP answer whenever more of it comes",
        "resilience.endless-answer-http",
        Parts(link=RescansBodies),
        also=("resilience.gzip-bomb",),
    ),
    "rescans-bodies": Fault(
        "copies all that it has of a body whenever more of it is decompressed",
        "resilience.gzip-bomb",
        Parts(link=RescansBodies),
        also=("resilience.endless-answer-http",),
    ),
    "holds-lines": Fault("knows no limit of a line", "resilience.endless-answer-held", Parts(link=HoldsAll)),
    "holds-bodies": Fault("knows no limit of a body", "resilience.gzip-bomb-held", Parts(link=HoldsAll)),
    "reads-schemas": Fault(
        "follows every reference of a schema to search it",
        "resilience.schema-bomb",
        Parts(meta=ReadsSchemas),
        mode="meta",
    ),
    "reads-every-page": Fault(
        "asks for pages as long as there are any", "resilience.endless-pages", Parts(names=ReadsEveryPage)
    ),
    "says-names-back": Fault(
        "repeats a name that nobody has", "resilience.long-name", Parts(names=SaysNamesBack)
    ),
    "writes-slowly": Fault(
        "does something slow for each message of a server", "resilience.flood", Parts(link=WritesSlowly)
    ),
    "drops-surrogates": Fault(
        "drops a message that isn't Unicode", "resilience.many-keys", Parts(link=DropsSurrogates)
    ),
    "runs-elsewhere": Fault(
        "looks for a tool that isn't there at every server",
        "security.call-of-another-server",
        Parts(names=RunsElsewhere),
    ),
    "runs-bare-names": Fault(
        "takes a name without a server for the tool of any",
        "security.bare-name-of-another-server",
        Parts(names=RunsBareNames),
        also=("security.call-of-another-server",),
    ),
    "forgets-links": Fault(
        "reads a resource from whoever lists it",
        "security.resource-of-another-server",
        Parts(names=ForgetsLinks),
    ),
}
