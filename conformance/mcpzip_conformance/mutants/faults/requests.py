"""Faults of what the server gets of a call."""

import json
from collections.abc import Callable, Mapping

from mcpzip.wire import Request, join_object, quote, with_members
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import GoneError, RefusedError
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.session import Servers, Session
from mcpzip_conformance.mutants.relay.upstream import Link, Upstream

Object = dict[str, object]


def gives(change: Callable[[object], object]) -> Parts:
    """A relay that applies this to the arguments of each call."""

    class Giving(Session):
        async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
            given = members(params).get("arguments")
            if request.method == "tools/call" and given is not None:
                arguments = json.dumps(change(json.loads(given))).encode()
                params = with_members(params or b"{}", {"arguments": arguments})
            return await super().sent_on(request, link, params)

    return Parts(names=Giving)


def _of_object(change: Callable[[Object], Object]) -> Callable[[object], object]:
    return lambda value: change(value) if isinstance(value, dict) else value


def _typed(value: object) -> object:
    """Decodes strings that contain JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _cut(value: object) -> object:
    return value[:65536] if isinstance(value, str) else value


_OWN = ("name", "server", "tool", "timeout")


class DropsRequestMeta(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        kept = {key: value for key, value in members(params).items() if key != "_meta" or link.modern}
        return await super().sent_on(request, link, join_object(kept))


class NeedsArguments(Session):
    async def called(self, request: Request, servers: Servers) -> bytes:
        if "arguments" not in members(request.params):
            raise self.invalid("A call has arguments.")
        return await super().called(request, servers)


class LowersNames(Session):
    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        name = text(members(params).get("name")).lower()
        known = {own.lower(): own for own in upstream.tools}
        return await super().run_tool(
            request, upstream, with_members(params, {"name": quote(known.get(name, name))})
        )


class RunsAnother(Session):
    """Uses the last known tool instead of an unknown one."""

    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        name = text(members(params).get("name"))
        if upstream.tools and name not in upstream.tools:
            name = list(upstream.tools)[-1]
        return await super().run_tool(request, upstream, with_members(params, {"name": quote(name)}))


class SaysNothing(Session):
    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        try:
            return await super().run_tool(request, upstream, params)
        except RefusedError:
            if text(members(params).get("name")) in upstream.tools:
                raise
            return b'{"content":[]}'


class RunsTwice(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        if request.method == "tools/call":
            await super().sent_on(request, link, params)
        return await super().sent_on(request, link, params)


class Retries(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        try:
            return await super().sent_on(request, link, params)
        except GoneError:
            return await super().sent_on(request, await link.upstream.link(), params)


class Broadcasts(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        for other in self.servers.by_name.values() if self.servers is not None else ():
            if request.method == "tools/call" and other.up is not None and other.up is not link:
                self.run(self._also(other.up, params))
        return await super().sent_on(request, link, params)

    @staticmethod
    async def _also(link: Link, params: bytes | None) -> None:
        try:
            await link.ask("tools/call", params)
        except RefusedError:
            pass  # nobody asked for it


class TellsOthers(Session):
    async def sent_on(self, request: Request, link: Link, params: bytes | None) -> bytes:
        result = await super().sent_on(request, link, params)
        for other in self.servers.by_name.values() if self.servers is not None else ():
            if request.method == "tools/call" and other.up is not None and other.up is not link:
                other.up.notify("notifications/context", result)
        return result


FAULTS: Mapping[str, Fault] = {
    "drops-nulls": Fault(
        "drops null arguments",
        "arguments.null-members",
        gives(_of_object(lambda given: {key: value for key, value in given.items() if value is not None})),
    ),
    "reads-strings": Fault(
        "reads JSON in strings",
        "arguments.text-is-not-touched",
        gives(_of_object(lambda given: {key: _typed(value) for key, value in given.items()})),
    ),
    "takes-own-words": Fault(
        "takes arguments that are called as its own for its own",
        "arguments.own-words",
        gives(_of_object(lambda given: {key: value for key, value in given.items() if key not in _OWN})),
    ),
    "empties-text": Fault(
        "runs with {} when arguments are no object",
        "arguments.as-text",
        gives(lambda value: value if isinstance(value, dict) else {}),
        also=("arguments.as-text-twice",),
    ),
    "cuts-arguments": Fault(
        "cuts strings at 64 KiB",
        "fidelity.large-arguments",
        gives(_of_object(lambda given: {key: _cut(value) for key, value in given.items()})),
    ),
    "flattens": Fault(
        "writes nested arguments as text",
        "fidelity.arguments",
        gives(
            _of_object(
                lambda given: {
                    key: json.dumps(value) if isinstance(value, list) else value
                    for key, value in given.items()
                }
            )
        ),
    ),
    "needs-arguments": Fault(
        "refuses a call without arguments", "arguments.none", Parts(names=NeedsArguments)
    ),
    "drops-request-meta": Fault(
        "keeps _meta of a call to itself",
        "fidelity.request-meta",
        Parts(names=DropsRequestMeta),
    ),
    "lowers-names": Fault("takes names in small letters", "fidelity.tool-names", Parts(names=LowersNames)),
    "runs-another": Fault(
        "runs another tool for one it doesn't know",
        "arguments.near-miss-name",
        Parts(names=RunsAnother),
        also=("protocol.unknown-tool",),
    ),
    "says-nothing": Fault(
        "answers a call of a tool that isn't there with nothing",
        "protocol.unknown-tool",
        Parts(names=SaysNothing),
        also=("arguments.near-miss-name", "resilience.dead-server", "resilience.missing-command"),
    ),
    "runs-twice": Fault(
        "sends every call twice",
        "resilience.runs-once",
        Parts(names=RunsTwice),
    ),
    "retries": Fault(
        "sends a call again after a crash", "resilience.no-double-execution", Parts(names=Retries)
    ),
    "broadcasts": Fault(
        "sends every call to every server", "security.calls-stay-apart", Parts(names=Broadcasts)
    ),
    "tells-others": Fault(
        "tells every server what another has answered",
        "security.answers-stay-apart",
        Parts(names=TellsOthers),
        also=("security.calls-stay-apart",),
    ),
}
