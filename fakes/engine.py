"""What a request means under a scenario, whatever carried it.

The rule: nothing here knows a transport. A request comes in decoded, with the protocol version it is under
and a way back to its client; its result goes out as JSON text, or as `Refused`. Each is a coroutine of its
own, so calls run concurrently, and cancelling the coroutine ends the call.

Specification: 2025-11-25 and 2026-07-28, `server/*`. The handshake is in `eras`, what happens during a call
in `calls`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import UNSET

from fakes.answer import JsonObject, fill, json_value
from fakes.calls import Channel, Refused, Request, as_object, call
from fakes.definitions import Prompt, Resource, Tool
from fakes.faults import Firing
from fakes.scenario import Scenario
from mcpzip.wire import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    SERVER_INFO_KEY,
    SUBSCRIPTION_ID_KEY,
)

Note = Callable[[str, JsonObject], None]
"""Puts an event into the record: its name and what belongs to it."""

Handler = Callable[["Engine", Request], Awaitable[JsonObject | bytes]]

_CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
_LIST_CHANGED = "notifications/tools/list_changed"


class Engine:
    """One server process's state: which tools it has now, how often each was called, who listens for
    changes."""

    def __init__(self, scenario: Scenario, note: Note = lambda event, detail: None) -> None:
        self.scenario = scenario
        self.note = note
        self.sessions: dict[object, Channel] = {}
        """The standing way back to each legacy client, by whatever the transport tells them apart by."""
        self._listening: dict[object, asyncio.Queue[None]] = {}
        self._calls: dict[str, int] = {}
        self._has(scenario.all_tools())

    def _has(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._by_name: dict[str, Tool] = {}
        for tool in tools:
            self._by_name.setdefault(tool.name, tool)

    async def answer(self, request: Request) -> bytes:
        """The result, as JSON text. Refused when it is an error. CancelledError ends a call, and the record
        says so."""
        handler = (_MODERN if request.modern else _LEGACY).get(request.method)
        if handler is None:
            raise Refused(METHOD_NOT_FOUND, "Method not found", request.method)
        result = await handler(self, request)
        if request.modern:
            result = self._stamp(request.method, result)
        return result if isinstance(result, bytes) else msgspec.json.encode(result)

    def cancelled(self, request: Request) -> None:
        """Call it when ``request`` was given up: the record is to say that it ended."""
        name = request.params.get("name")
        self.note("cancelled", {"method": request.method, "id": request.id, "name": name})

    async def answered(self, request: Request) -> None:
        """Call it once the answer to ``request`` has gone out: what happens after it happens now."""
        if change := request.firing.get("list-changed"):
            self._has(self.scenario.changed_tools)
            for _ in range(int(change.number("count"))):
                for channel in list(self.sessions.values()):
                    await channel.notify(_LIST_CHANGED, {})
                for queue in self._listening.values():
                    queue.put_nowait(None)

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a tool it has now, or None."""
        tool = self._by_name.get(name)
        return None if tool is None else as_object(tool.definition().get("inputSchema"))

    def info(self) -> JsonObject:
        """``serverInfo``."""
        title: JsonObject = {} if self.scenario.title is None else {"title": self.scenario.title}
        return {"name": self.scenario.name, **title, "version": self.scenario.version}

    def greeting(self) -> JsonObject:
        """What `initialize` and `server/discover` answer alike."""
        said: JsonObject = {"capabilities": self._capabilities()}
        if self.scenario.instructions is not None:
            said["instructions"] = self.scenario.instructions
        return said

    def _capabilities(self) -> object:
        """What the scenario declares, or what follows from what it has."""
        told = self.scenario
        if told.capabilities is not None:
            return json_value(told.capabilities)
        changes = bool(told.changed_tools) or any(fault.kind == "list-changed" for fault in told.faults)
        found: JsonObject = {"tools": {"listChanged": True} if changes else {}}
        if told.resources or told.resource_templates:
            found["resources"] = {}
        if told.prompts:
            found["prompts"] = {}
        if any(prompt.complete for prompt in told.prompts):
            found["completions"] = {}
        if any(tool.result.log for tool in self._tools):
            found["logging"] = {}
        return found

    def _stamp(self, method: str, result: JsonObject | bytes) -> JsonObject | bytes:
        """What a modern result must carry, added where it isn't there (2026-07-28 `basic/index`,
        `utilities/caching`)."""
        fields: Mapping[str, object]
        if isinstance(result, bytes):
            try:
                fields = msgspec.json.decode(result, type=dict[str, msgspec.Raw])
            except msgspec.DecodeError:
                return result  # not an object: it was meant to be wrong
        else:
            fields = result
        stamped: JsonObject = {**fields}
        stamped.setdefault("resultType", "complete")
        if method in _CACHEABLE:
            stamped.setdefault("ttlMs", self.scenario.ttl_ms)
            stamped.setdefault("cacheScope", self.scenario.cache_scope)
        meta = stamped.get("_meta", {})
        if isinstance(meta, msgspec.Raw):
            meta = msgspec.json.decode(meta, type=dict[str, msgspec.Raw])
        stamped["_meta"] = {**as_object(meta), SERVER_INFO_KEY: self.info()}
        return stamped

    def _page(self, request: Request, key: str, raws: Sequence[str]) -> JsonObject:
        size = self.scenario.page_size or max(len(raws), 1)
        cursors: list[str | None] = [None, *(f"page-{n}" for n in range(2, -(-len(raws) // size) + 1))]
        if request.firing.get("empty-cursor") and len(cursors) > 1:
            cursors[1] = ""
        asked = request.params.get("cursor")
        if asked not in cursors:
            raise Refused(INVALID_PARAMS, "Invalid cursor", {"cursor": asked})
        index = cursors.index(asked)
        part = raws[index * size : (index + 1) * size]
        page: JsonObject = {key: [msgspec.Raw(raw.encode()) for raw in part]}
        if index + 1 < len(cursors):
            page["nextCursor"] = cursors[index + 1]
        elif request.firing.get("cursor-loop") and len(cursors) > 1:
            page["nextCursor"] = cursors[1]
        return page

    async def list_tools(self, request: Request) -> JsonObject:
        return self._page(request, "tools", [tool.raw for tool in self._tools])

    async def list_resources(self, request: Request) -> JsonObject:
        return self._page(request, "resources", [it.raw for it in self.scenario.resources])

    async def list_templates(self, request: Request) -> JsonObject:
        return self._page(request, "resourceTemplates", [it.raw for it in self.scenario.resource_templates])

    async def list_prompts(self, request: Request) -> JsonObject:
        return self._page(request, "prompts", [it.raw for it in self.scenario.prompts])

    async def call_tool(self, request: Request) -> JsonObject | bytes:
        name = request.params.get("name")
        if not isinstance(name, str):
            raise Refused(INVALID_PARAMS, "params.name must be a string")
        tool = self._by_name.get(name)
        if tool is None:
            raise Refused(INVALID_PARAMS, f"Unknown tool: {name}")
        self._calls[name] = self._calls.get(name, 0) + 1
        return await call(request, tool, self._calls[name])

    async def read_resource(self, request: Request) -> JsonObject:
        uri = request.params.get("uri")
        if not isinstance(uri, str):
            raise Refused(INVALID_PARAMS, "params.uri must be a string")
        for resource in (*self.scenario.resources, *self.scenario.resource_templates):
            definition = resource.definition()
            if definition.get("uri") == uri or _template_matches(definition.get("uriTemplate"), uri):
                return {"contents": [_contents(resource, definition, uri)]}
        raise Refused(
            INVALID_PARAMS if request.modern else RESOURCE_NOT_FOUND,
            f"Resource not found: {uri}",
            {"uri": uri},
        )

    async def get_prompt(self, request: Request) -> JsonObject:
        prompt = self._prompt(request.params.get("name"))
        arguments = as_object(request.params.get("arguments"))
        return {"messages": fill(json_value(prompt.messages), arguments)}

    async def complete(self, request: Request) -> JsonObject:
        ref, argument = as_object(request.params.get("ref")), as_object(request.params.get("argument"))
        offered = self._prompt(ref.get("name")).complete.get(str(argument.get("name")), ())
        values = [value for value in offered if value.startswith(str(argument.get("value", "")))]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def _prompt(self, name: object) -> Prompt:
        for prompt in self.scenario.prompts:
            if prompt.name == name:
                return prompt
        raise Refused(INVALID_PARAMS, f"Unknown prompt: {name}")

    async def nothing(self, request: Request) -> JsonObject:
        return {}

    async def discover(self, request: Request) -> JsonObject:
        return {"supportedVersions": list(self.scenario.modern_versions), **self.greeting()}

    async def listen(self, request: Request) -> JsonObject:
        """`subscriptions/listen`: acknowledges, then tells of changes until it is cancelled."""
        wanted = as_object(request.params.get("notifications"))
        honoured = {key: True for key in ("toolsListChanged",) if wanted.get(key) is True}
        meta = {SUBSCRIPTION_ID_KEY: request.id}
        queue: asyncio.Queue[None] = asyncio.Queue()
        key = object()
        if honoured:
            self._listening[key] = queue
        try:
            params: JsonObject = {"notifications": honoured, "_meta": meta}
            await request.channel.notify("notifications/subscriptions/acknowledged", params)
            while True:
                await queue.get()
                await request.channel.notify(_LIST_CHANGED, {"_meta": meta})
        finally:
            self._listening.pop(key, None)


_BOTH: dict[str, Handler] = {
    "tools/list": Engine.list_tools,
    "tools/call": Engine.call_tool,
    "resources/list": Engine.list_resources,
    "resources/templates/list": Engine.list_templates,
    "resources/read": Engine.read_resource,
    "prompts/list": Engine.list_prompts,
    "prompts/get": Engine.get_prompt,
    "completion/complete": Engine.complete,
}
_LEGACY: dict[str, Handler] = {**_BOTH, "ping": Engine.nothing, "logging/setLevel": Engine.nothing}
_MODERN: dict[str, Handler] = {
    **_BOTH,
    "server/discover": Engine.discover,
    "subscriptions/listen": Engine.listen,
}


def refuse_if_told(firing: Firing) -> None:
    """Raise the `Refused` that the fault ``error`` asks for, if it fires."""
    if error := firing.get("error"):
        data = UNSET if error.data is UNSET else json_value(error.data)
        raise Refused(int(error.number("code")), error.string("message"), data)


def _template_matches(template: object, uri: str) -> bool:
    """RFC 6570, its first level only: ``{name}`` stands for one path segment."""
    if not isinstance(template, str):
        return False
    parts = re.split(r"\{[^{}]+\}", template)
    return re.fullmatch("[^/]+".join(re.escape(part) for part in parts), uri) is not None


def _contents(resource: Resource, definition: JsonObject, uri: str) -> JsonObject:
    held: JsonObject = {"uri": uri}
    if "mimeType" in definition:
        held["mimeType"] = definition["mimeType"]
    if resource.blob is not None:
        held["blob"] = resource.blob
    elif resource.size is not None:
        held["text"] = "x" * resource.size
    else:
        held["text"] = (resource.text or "").replace("{uri}", uri)
    return held
