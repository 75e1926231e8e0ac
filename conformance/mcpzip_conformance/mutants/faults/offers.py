"""Faults of lists, definitions, resources and prompts."""

import json
from collections.abc import Callable, Mapping
from typing import cast

from mcpzip.wire import Request, without_members
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.listing import LISTS, listed
from mcpzip_conformance.mutants.relay.naming import addressed, members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Servers, Session
from mcpzip_conformance.mutants.relay.upstream import Link

Object = dict[str, object]


def shows(method: str, change: Callable[[Object], Object]) -> Parts:
    """A relay that applies this to each definition of a list."""
    member = LISTS[method].member

    class Showing(Session):
        async def answered(self, request: Request) -> bytes:
            result = await super().answered(request)
            if request.method != method:
                return result
            return json.dumps({member: [change(each) for each in json.loads(result)[member]]}).encode()

    return Parts(names=Showing)


def asks(method: str, change: Callable[[bytes], bytes]) -> Parts:
    """A relay that applies this to the params of each request of a method."""

    class Asking(Session):
        async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
            if request.method == method:
                params = change(params or b"{}")
            return await super().sent_on(request, link, params)

    return Parts(names=Asking)


def tells(method: str, change: Callable[[Object], Object]) -> Parts:
    """A relay that applies this to the result of each request of a method."""

    class Telling(Session):
        async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
            result = await super().sent_on(request, link, params)
            return json.dumps(change(json.loads(result))).encode() if request.method == method else result

    return Parts(names=Telling)


def _without(*keys: str) -> Callable[[Object], Object]:
    return lambda value: {key: item for key, item in value.items() if key not in keys}


def _only(*keys: str) -> Callable[[Object], Object]:
    return lambda value: {key: item for key, item in value.items() if key in keys}


def _resolved(tool: Object) -> Object:
    """A schema without parts that many readers can't resolve."""
    schema = cast(Object, tool["inputSchema"])
    return {**tool, "inputSchema": _without("$schema", "$defs", "definitions")(schema)}


def _simple(tool: Object) -> Object:
    schema = cast(Object, tool["inputSchema"])
    return {**tool, "inputSchema": _only("type", "properties", "required")(schema)}


def _as_text(result: Object) -> Object:
    contents = cast(list[Object], result["contents"])
    return {**result, "contents": [{"text": "", **_without("blob")(each)} for each in contents]}


def _texts_only(result: Object) -> Object:
    messages = cast(list[Object], result["messages"])
    kept = [each for each in messages if cast(Object, each["content"])["type"] == "text"]
    return {**result, "messages": kept}


class FirstPage(Link):
    """Reads only the first page. of: the lists."""

    of: tuple[str, ...] = ("tools/list",)

    async def ask(self, method: str, params: bytes | None = None) -> bytes:
        result = await super().ask(method, params)
        return without_members(result, ("nextCursor",)) if method in self.of else result


class FirstPageOfRest(FirstPage):
    of = ("resources/list", "prompts/list")


class EmptyIsLast(Link):
    async def ask(self, method: str, params: bytes | None = None) -> bytes:
        result = await super().ask(method, params)
        last = members(result).get("nextCursor") == b'""'
        return without_members(result, ("nextCursor",)) if last else result


class Trimmed(Session):
    """Trims the text of resources."""

    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        result = await super().sent_on(request, link, params)
        if request.method != "resources/read":
            return result
        decoded = json.loads(result)
        for part in decoded["contents"]:
            part["text"] = "\n".join(str(part.get("text", "")).splitlines())
        return json.dumps(decoded).encode()


class Grows(Session):
    """Lists the last called tool first."""

    latest = b""

    async def called(self, request: Request, servers: Servers) -> bytes:
        self.latest = members(request.params).get("name", b"")
        return await super().called(request, servers)

    async def tools(self, servers: Servers) -> bytes:
        result = await super().tools(servers)
        if not self.latest:
            return result
        return result.replace(b'"name":' + self.latest, b'"title":"used","name":' + self.latest)


class Listed(Session):
    """Reads only listed resources."""

    async def passed(self, request: Request, servers: Servers) -> bytes:
        if request.method == "resources/read":
            server, params = addressed(request.method, request.params, servers.by_name)
            known = [
                members(raw).get("uri") for raw in await listed(servers.by_name[server], "resources/list")
            ]
            if members(params).get("uri") not in known:
                raise self.invalid(f"{text(members(request.params).get('uri'))} is not listed.")
        return await super().passed(request, servers)


FAULTS: Mapping[str, Fault] = {
    "first-page-only": Fault("ignores nextCursor", "protocol.paging", Parts(link=FirstPage)),
    "first-page-of-rest": Fault(
        "ignores nextCursor of resources and prompts",
        "fidelity.resources-paging",
        Parts(link=FirstPageOfRest),
        also=("fidelity.prompts-paging",),
    ),
    "empty-is-last": Fault(
        "takes an empty cursor for none", "protocol.paging-empty-cursor", Parts(link=EmptyIsLast)
    ),
    "loses-annotations": Fault(
        "shows definitions without annotations",
        "fidelity.annotations",
        shows("tools/list", _without("annotations")),
    ),
    "loses-output-schema": Fault(
        "shows definitions without outputSchema",
        "fidelity.output-schema",
        shows("tools/list", _without("outputSchema")),
    ),
    "loses-defs": Fault(
        "shows schemas without $defs",
        "fidelity.schema-refs",
        shows("tools/list", _resolved),
    ),
    "simplifies": Fault(
        "shows the best known keywords of a schema only",
        "fidelity.schema-keywords",
        shows("tools/list", _simple),
        also=(
            "fidelity.definition",
            "fidelity.schema-refs",
        ),
    ),
    "loses-resource-fields": Fault(
        "lists resources with uri and name only",
        "fidelity.resource-listing",
        shows("resources/list", _only("uri", "name")),
    ),
    "loses-template-fields": Fault(
        "lists templates with uriTemplate and name only",
        "fidelity.resource-template-listing",
        shows("resources/templates/list", _only("uriTemplate", "name")),
    ),
    "loses-prompt-fields": Fault(
        "lists prompts with name and arguments only",
        "fidelity.prompt-listing",
        shows("prompts/list", _only("name", "arguments")),
    ),
    "loses-blobs": Fault("reads text only", "fidelity.resource-blob", tells("resources/read", _as_text)),
    "trims": Fault("trims the text of resources", "fidelity.resource-text", Parts(names=Trimmed)),
    "marks-called": Fault("marks in its list what was called", "protocol.listing-stable", Parts(names=Grows)),
    "reads-listed": Fault("reads only what is listed", "fidelity.resource-by-template", Parts(names=Listed)),
    "loses-messages": Fault(
        "gives a prompt's text only", "fidelity.prompt", tells("prompts/get", _texts_only)
    ),
    "drops-prompt-arguments": Fault(
        "drops the arguments of a prompt",
        "fidelity.prompt-arguments",
        asks("prompts/get", lambda params: without_members(params, ("arguments",))),
    ),
    "drops-context": Fault(
        "drops the context of a completion",
        "fidelity.completion-prompt",
        asks("completion/complete", lambda params: without_members(params, ("context",))),
    ),
    "completes-nothing": Fault(
        "knows no completions",
        "fidelity.completion-template",
        tells("completion/complete", lambda result: {**result, "completion": {"values": []}}),
    ),
}
