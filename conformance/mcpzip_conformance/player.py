"""A client that calls tools: one connection in one version of the protocol.

The same player is used directly to a server and through a subject; only its `Route` differs.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

import msgspec

from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    MODERN_VERSIONS,
    NotAnObject,
    initialize_params,
    join_object,
    quote,
    split_object,
    stamp_request,
    unquote,
)
from mcpzip_conformance.client import Client
from mcpzip_conformance.errors import Finding
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.route import Route

CLIENT_INFO = join_object({"name": quote("conformance"), "version": quote("1")})
CAPABILITIES = {
    "sampling/createMessage": ("sampling", b"{}"),
    "elicitation/create": ("elicitation", b'{"form":{},"url":{}}'),
    "roots/list": ("roots", b'{"listChanged":true}'),
}
"""Method of a question -> the capability that it needs."""
TO_START = 3.0
"""The factor of the patience for the start of a process and its first answer."""
_PAGES = 100
_ROUNDS = 10


class Player:
    """client: the connection; version: of the protocol; opening: the answer to `initialize`.

    It declares the capabilities for which its client has answers (`Client.answers`).
    """

    def __init__(
        self,
        client: Client,
        route: Route,
        version: str = LATEST_LEGACY_VERSION,
        info: bytes = CLIENT_INFO,
    ) -> None:
        """info: its name and version (``clientInfo``), as JSON text."""
        self.client, self.route, self.version, self.info = client, route, version, info
        self.opening = Reply()
        declared = {CAPABILITIES[method] for method in client.answers if method in CAPABILITIES}
        self.capabilities = join_object(dict(sorted(declared)))

    @property
    def modern(self) -> bool:
        """Whether it speaks the modern, stateless era."""
        return self.version in MODERN_VERSIONS

    async def open(self) -> Reply:
        """The handshake of its era: the answer to `initialize` or `server/discover`. Raises Finding if that
        is an error."""
        if self.modern:
            number = self.send("server/discover")
        else:
            number = self.send("initialize", initialize_params(self.version, self.info, self.capabilities))
        self.opening = await self.client.reply(number, self.client.patience * TO_START)
        if self.opening.error is not None:
            raise Finding(f"The handshake in version {self.version} was refused: {self.opening.text}")
        if not self.modern:
            self.client.notify("notifications/initialized")
        return self.opening

    def offers(self, capability: str) -> bool:
        """Whether the other side has declared ``capability`` (``resources``, ``prompts``, …)."""
        offered = self.opening.fields.get("capabilities")
        return isinstance(offered, dict) and capability in offered

    async def ready(self, tools: Sequence[tuple[str, str]]) -> None:
        """Wait until the subject shows ``tools`` (server, tool), at most as long as for an answer, because it
        may answer before its servers do, or have no way to show a tool."""
        deadline = time.monotonic() + self.client.patience
        wanted = list(tools)
        while wanted and time.monotonic() < deadline:
            left = await self._not_shown(wanted)
            if len(left) == len(wanted):
                await asyncio.sleep(0.05)
            wanted = left

    async def _not_shown(self, tools: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Those of ``tools`` that the subject doesn't show yet, found in the cheapest way."""
        if not self.route.meta:
            if self.route.subject.tools.hidden:
                return []
            listed = {name_of(tool) for tool in await self.list_tools()}
            return [(server, tool) for server, tool in tools if self.route.shown(server, tool) not in listed]
        server, tool = tools[0]
        if self.route.defines:
            there = await self.definition(server, tool) is not None
        elif self.route.subject.tools.search is not None:
            shown = self.route.shown(server, tool)
            there = shown in await self.search(shown)
        else:
            return []
        return list(tools[1:] if there else tools)

    def send(
        self, method: str, params: bytes | None = None, *, more: Mapping[str, bytes] | None = None
    ) -> int:
        """Send a request without waiting. Returns the id for `reply`. more: further members of ``_meta``,
        JSON text each."""
        if more:
            fields = {} if params is None else split_object(params)
            meta = split_object(fields.get("_meta", b"{}")) | dict(more)
            params = join_object(fields | {"_meta": join_object(meta)})
        if self.modern:
            params = stamp_request(params, self.version, self.info, self.capabilities)
        return self.client.send(method, params)

    async def reply(self, number: int) -> Reply:
        """The answer to request ``number``, without what the subject declares to add around it. Raises
        NoAnswerError, GoneError."""
        return self._inner(await self.client.reply(number))

    async def request(self, method: str, params: bytes | None = None) -> Reply:
        """Send a request and wait; a modern answer with questions is answered and the request sent again,
        until there are none. Raises NoAnswerError, GoneError."""
        reply = await self.client.reply(self.send(method, params))
        for _ in range(_ROUNDS):
            more = self._answers_to(reply) if self.modern else None
            if more is None:
                return reply
            fields = {} if params is None else split_object(params)
            reply = await self.client.reply(self.send(method, join_object(fields | more)))
        return reply

    def _answers_to(self, reply: Reply) -> dict[str, bytes] | None:
        """The members of the next request that answer an ``input_required`` result; None if it is none, or
        this client can't answer it."""
        if reply.fields.get("resultType") != "input_required" or not self.client.answers:
            return None
        result = split_object(reply.result or b"{}")
        responses = {}
        for key, question in split_object(result.get("inputRequests", b"{}")).items():
            asked = split_object(question)
            answer = self.client.answers.get(unquote(asked["method"]))
            said = None if answer is None else answer(asked.get("params", b"{}"))
            if said is None:
                return None
            responses[key] = said
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return {"inputResponses": join_object(responses), **state}

    def begin(
        self,
        server: str,
        tool: str,
        arguments: bytes | None = b"{}",
        meta: bytes | None = None,
        *,
        flat: bool = False,
    ) -> int:
        """Start a tool call without waiting. Returns the id for `reply`."""
        return self.send("tools/call", self.route.call(server, tool, arguments, meta, flat=flat))

    async def call(
        self,
        server: str,
        tool: str,
        arguments: bytes | None = b"{}",
        meta: bytes | None = None,
        *,
        flat: bool = False,
    ) -> Reply:
        """Call a tool, and ask for the whole of its result if that is only a part. arguments, meta, flat: see
        `Route.call`. Raises NoAnswerError, GoneError."""
        params = self.route.call(server, tool, arguments, meta, flat=flat)
        return (await self._parts(params))[1]

    async def parts(self, server: str, tool: str, arguments: bytes = b"{}") -> tuple[Reply, Reply]:
        """Call a tool. Returns the answer, and the whole of its result: the same if the answer has all of it.
        Raises NoAnswerError, GoneError."""
        return await self._parts(self.route.call(server, tool, arguments))

    async def run(self, code: str) -> Reply:
        """Run a program, and ask for the whole of its result if that is only a part. Raises NoAnswerError,
        GoneError."""
        reply = await self.request("tools/call", self.route.program(code))
        return await self.whole(reply)

    async def whole(self, reply: Reply) -> Reply:
        """``reply``, or the whole of the result of which it has only a part."""
        rest = self.route.rest(reply)
        return reply if rest is None else await self.request("tools/call", rest)

    async def _parts(self, params: bytes) -> tuple[Reply, Reply]:
        reply = await self.request("tools/call", params)
        return self._inner(reply), self._inner(await self.whole(reply))

    def _inner(self, reply: Reply) -> Reply:
        return reply if reply.result is None else Reply(result=self.route.inner(reply.result))

    async def search(self, query: str, limit: int | None = None) -> list[str]:
        """The names found, best first."""
        return self.route.found(await self.search_reply(query, limit))

    async def search_reply(self, query: str, limit: int | None = None) -> Reply:
        """The answer to a search."""
        return await self.request("tools/call", self.route.search(query, limit))

    async def list_tools(self) -> list[bytes]:
        """The definitions in `tools/list`, all pages, each as JSON text. Raises Finding if it fails."""
        tools: list[bytes] = []
        cursor: bytes | None = None
        for _ in range(_PAGES):
            params = None if cursor is None else join_object({"cursor": cursor})
            reply = await self.request("tools/list", params)
            try:
                page = split_object(reply.result or b"")
                tools += map(bytes, msgspec.json.decode(page["tools"], type=list[msgspec.Raw]))
            except (NotAnObject, KeyError, msgspec.DecodeError):
                raise Finding(f"tools/list gave no list of tools: {reply.text or reply.result!r}") from None
            cursor = page.get("nextCursor")
            if cursor in (None, b"null"):
                return tools
        raise Finding(f"tools/list still had a next page after {_PAGES} pages.")

    async def definition(self, server: str, tool: str) -> bytes | None:
        """The definition of ``tool`` as the subject shows it, as JSON text, without its declared additions;
        None if it shows none."""
        params = self.route.describe(server, tool)
        if params is not None:
            raw = self.route.definition(await self.request("tools/call", params), tool)
        else:
            shown = self.route.shown(server, tool)
            raw = next((raw for raw in await self.list_tools() if name_of(raw) == shown), None)
        return None if raw is None else self.route.undone(raw)


def name_of(definition: bytes) -> str | None:
    """The name in a tool's definition; None when it has none."""
    value = msgspec.json.decode(definition)
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None
