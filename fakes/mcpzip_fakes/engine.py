"""Answers requests as a scenario defines, on any transport.

The rule: nothing here depends on a transport. A request is decoded and has its protocol version and a channel
to its client; its result is JSON text, or `Refused` is raised. Each request is answered by a coroutine of its
own, so calls run concurrently, and cancelling the coroutine ends the call.

Specification: 2025-11-25 and 2026-07-28, `server/*`. The handshake is in `eras`, tool calls are in
`calls`, notifications of changes in `subscribers`.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET

from mcpzip.wire import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    SERVER_INFO_KEY,
)
from mcpzip_fakes import hostile, questions
from mcpzip_fakes.answer import JsonObject, fill, json_value
from mcpzip_fakes.calls import LEVELS, call
from mcpzip_fakes.capabilities import capabilities, honoured
from mcpzip_fakes.definitions import Prompt, Resource, Tool
from mcpzip_fakes.faults import Firing
from mcpzip_fakes.holds import Holds
from mcpzip_fakes.questions import InputRequired
from mcpzip_fakes.record import Record
from mcpzip_fakes.request import Refused, Request, as_object
from mcpzip_fakes.scenario import Scenario
from mcpzip_fakes.subscribers import LIST_FILTERS, Audience

Note = Callable[[str, JsonObject], None]
"""Records an event: its name and its details."""

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
Thing = TypeVar("Thing", Tool, Resource, Prompt)


class Engine:
    """The state of one server process: its lists, the number of calls of each tool, its subscribers, its held
    calls."""

    def __init__(
        self,
        scenario: Scenario,
        note: Note = lambda event, detail: None,
        past: Record | None = None,
        releases: Record | None = None,
    ) -> None:
        """past: the record of all processes of this server, if a change in one changes all; releases: the
        record in which a test releases held calls."""
        self.scenario = scenario
        self.note = note
        self.initialized = 0
        """The number of ``initialize`` requests so far."""
        self._past = past
        self._holds = Holds(releases)
        self._sessions: dict[object, int] = {}
        self.audience = Audience()
        self._calls: dict[str, int] = {}
        self._changed = dict.fromkeys(LIST_FILTERS, False)
        """By list: whether its ``late`` items are there now."""
        self._every_tool: Sequence[Tool] = scenario.all_tools()
        self._name_tools()

    def _name_tools(self) -> None:
        self._by_name: dict[str, Tool] = {}
        for tool in self._now("tools", self._every_tool):
            self._by_name.setdefault(tool.name, tool)

    def _now(self, kind: str, every: Sequence[Thing]) -> list[Thing]:
        """The current items of a list: a change in one process of a server changes all."""
        if self._past is not None and any(it.late for it in every):
            changes = [line for line in self._past.events("changed") if line.detail.get("kind") == kind]
            self._changed[kind] = len(changes) % 2 == 1
        return [it for it in every if self._changed[kind] or not it.late]

    async def answer(self, request: Request) -> bytes:
        """The result, as JSON text. Raises Refused if it is an error. CancelledError ends a call and is
        recorded."""
        handler = self.handler(request)
        try:
            if (later := hostile.page(request)) is None:
                result = await handler(self, hostile.listening(request))
        except InputRequired as asked:
            result = asked.result
        except Refused as refusal:
            raise hostile.worded(refusal, request.firing) from None
        result = later or hostile.spoilt(request.method, result, request.firing)
        if request.modern:
            result = self._stamp(request.method, result)
        return result if isinstance(result, bytes) else msgspec.json.encode(result)

    def handler(self, request: Request) -> Handler:
        """What answers ``request``. Raises Refused if nothing does."""
        handler = (_MODERN if request.modern else _LEGACY).get(request.method)
        if handler is None:
            raise Refused(METHOD_NOT_FOUND, "Method not found", request.method)
        return handler

    def cancelled(self, request: Request) -> None:
        """Record that ``request`` was cancelled."""
        name = request.params.get("name")
        self.note("cancelled", {"method": request.method, "id": request.id, "name": name})

    def goes_on(self, request: Request) -> bool:
        """Whether a cancellation of ``request`` is ignored, as a server may."""
        tool = self._called(request)
        return tool is not None and tool.result.ignores_cancel

    def follows(self, request: Request) -> bool:
        """Whether `answered` must be called after the answer."""
        tool = self._called(request)
        told = tool is not None and bool(tool.result.changes or tool.result.updates)
        return told or request.firing.get("list-changed") is not None

    async def answered(self, request: Request) -> None:
        """Make the changes that follow the answer to ``request``; call it when the answer was sent."""
        if change := request.firing.get("list-changed"):
            self._every_tool = self.scenario.changed_tools
            self._name_tools()
            for _ in range(int(change.number("count"))):
                await self.audience.list_changed("tools")
        if tool := self._called(request):
            for kind in tool.result.changes:
                self._changed[kind] = not self._changed[kind]
                self.note("changed", {"kind": kind})
                self._name_tools()
                await self.audience.list_changed(kind)
            for uri in tool.result.updates:
                await self.audience.updated(uri)

    def _called(self, request: Request) -> Tool | None:
        """The tool that the request calls."""
        return self._by_name.get(str(request.params.get("name"))) if request.method == "tools/call" else None

    def input_schema(self, name: str) -> JsonObject | None:
        """The schema of a current tool, or None."""
        tool = self._by_name.get(name)
        return None if tool is None else as_object(tool.definition().get("inputSchema"))

    def info(self) -> JsonObject:
        """``serverInfo``."""
        title: JsonObject = {} if self.scenario.title is None else {"title": self.scenario.title}
        return {"name": self.scenario.name, **title, "version": self.scenario.version}

    def greeting(self) -> JsonObject:
        """The common members of the results of `initialize` and `server/discover`."""
        said: JsonObject = {"capabilities": capabilities(self.scenario, self._every_tool)}
        if self.scenario.instructions is not None:
            said["instructions"] = self.scenario.instructions
        return said

    def _stamp(self, method: str, result: JsonObject | bytes) -> JsonObject | bytes:
        """The result with the members that the modern era requires, added if missing (2026-07-28
        `basic/index`, `utilities/caching`)."""
        fields: Mapping[str, object]
        if isinstance(result, bytes):
            try:
                fields = msgspec.json.decode(result, type=dict[str, msgspec.Raw])
            except msgspec.DecodeError:
                return result  # not an object: deliberately invalid
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
        return self._page(request, "tools", [it.raw for it in self._now("tools", self._every_tool)])

    async def list_resources(self, request: Request) -> JsonObject:
        there = self._now("resources", self.scenario.resources)
        return self._page(request, "resources", [it.raw for it in there])

    async def list_templates(self, request: Request) -> JsonObject:
        there = self._now("resources", self.scenario.resource_templates)
        return self._page(request, "resourceTemplates", [it.raw for it in there])

    async def list_prompts(self, request: Request) -> JsonObject:
        there = self._now("prompts", self.scenario.prompts)
        return self._page(request, "prompts", [it.raw for it in there])

    async def call_tool(self, request: Request) -> JsonObject | bytes:
        name = _string(request, "name")
        self._name_tools()
        tool = self._by_name.get(name)
        if tool is None:
            raise Refused(INVALID_PARAMS, f"Unknown tool: {name}")
        self._calls[name] = self._calls.get(name, 0) + 1
        await hostile.flood(request)
        arguments = as_object(request.params.get("arguments"))

        async def held() -> None:
            self.note("held", {"name": name, "arguments": arguments})
            await self._holds.released(name, arguments)

        level = self.audience.level(request.session)
        return await call(
            request, tool, self._calls[name], level, held=held, caller=lambda: self.caller(request)
        )

    def caller(self, request: Request) -> JsonObject:
        """What this process knows of the caller. pid: of this process; initialized: the ``initialize``
        requests that it has got; session: the number of the caller's legacy session within the process, null
        in the modern era; client, capabilities: as declared; version: of the protocol; params: of the
        call."""
        session = None if request.modern else request.session
        number = None if session is None else self._sessions.setdefault(session, len(self._sessions) + 1)
        return {
            "pid": os.getpid(),
            "initialized": self.initialized,
            "session": number,
            "client": request.client,
            "capabilities": request.capabilities,
            "version": request.version,
            "params": request.params,
        }

    async def read_resource(self, request: Request) -> JsonObject:
        uri = _string(request, "uri")
        for resource in self._now("resources", (*self.scenario.resources, *self.scenario.resource_templates)):
            if (places := resource.places(uri)) is not None:
                replies = await questions.replies(request, resource.ask, state=resource.state, filled=True)
                if resource.whole is not UNSET:
                    return as_object(json_value(resource.whole))
                return {"contents": [resource.contents(uri, {**places, **replies})]}
        raise Refused(
            INVALID_PARAMS if request.modern else RESOURCE_NOT_FOUND,
            f"Resource not found: {uri}",
            {"uri": uri},
        )

    async def get_prompt(self, request: Request) -> JsonObject:
        prompt = self._prompt(request.params.get("name"))
        replies = await questions.replies(request, prompt.ask, state=prompt.state, filled=True)
        if prompt.whole is not UNSET:
            return as_object(json_value(prompt.whole))
        values = {**as_object(request.params.get("arguments")), **replies}
        return {"messages": fill(json_value(prompt.messages), values)}

    async def complete(self, request: Request) -> JsonObject:
        ref, argument = as_object(request.params.get("ref")), as_object(request.params.get("argument"))
        of_template = ref.get("type") == "ref/resource"
        of = self._template(ref.get("uri")) if of_template else self._prompt(ref.get("name"))
        offered = of.complete.get(str(argument.get("name")), ())
        values = [value for value in offered if value.startswith(str(argument.get("value", "")))]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def _prompt(self, name: object) -> Prompt:
        for prompt in self._now("prompts", self.scenario.prompts):
            if prompt.name == name:
                return prompt
        raise Refused(INVALID_PARAMS, f"Unknown prompt: {name}")

    def _template(self, template: object) -> Resource:
        for resource in self._now("resources", self.scenario.resource_templates):
            if resource.definition().get("uriTemplate") == template:
                return resource
        raise Refused(INVALID_PARAMS, f"Unknown resource template: {template}")

    async def subscribe(self, request: Request) -> JsonObject:
        self.audience.subscribe(request.session, _string(request, "uri"))
        return {}

    async def unsubscribe(self, request: Request) -> JsonObject:
        self.audience.unsubscribe(request.session, _string(request, "uri"))
        return {}

    async def set_level(self, request: Request) -> JsonObject:
        level = _string(request, "level")
        if level not in LEVELS:
            raise Refused(INVALID_PARAMS, f"Unknown log level: {level}")
        self.audience.set_level(request.session, level)
        return {}

    async def ping(self, request: Request) -> JsonObject:
        return {}

    async def discover(self, request: Request) -> JsonObject:
        return {"supportedVersions": list(self.scenario.modern_versions), **self.greeting()}

    async def listen(self, request: Request) -> JsonObject:
        await self.audience.listen(request, honoured(self.scenario))
        return {}


def _string(request: Request, key: str) -> str:
    """A parameter that must be a string. Raises Refused if it isn't."""
    value = request.params.get(key)
    if not isinstance(value, str):
        raise Refused(INVALID_PARAMS, f"params.{key} must be a string")
    return value


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
_LEGACY: dict[str, Handler] = {
    **_BOTH,
    "ping": Engine.ping,
    "logging/setLevel": Engine.set_level,
    "resources/subscribe": Engine.subscribe,
    "resources/unsubscribe": Engine.unsubscribe,
}
_MODERN: dict[str, Handler] = {
    **_BOTH,
    "server/discover": Engine.discover,
    "subscriptions/listen": Engine.listen,
}


def refuse_if_told(firing: Firing) -> None:
    """Raise the `Refused` of the fault ``error``, if it fires."""
    if error := firing.get("error"):
        data = UNSET if error.data is UNSET else json_value(error.data)
        raise hostile.worded(Refused(int(error.number("code")), error.string("message"), data), firing)
