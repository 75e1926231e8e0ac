"""The relay's own three tools: ``find``, ``show`` and ``run``.

The rule: in any form of the arguments of ``run``, the tool runs with the intended arguments or not at all.
"""

import json
import re

from mcpzip.wire import NotAnObject, Request, join_object, quote, split_object, without_members
from mcpzip_conformance.mutants.relay.listing import listed, with_shown_key
from mcpzip_conformance.mutants.relay.naming import SEPARATOR, members, own_name, shown, text
from mcpzip_conformance.mutants.relay.session import Servers, Session

_ANY = {"type": "object"}


class Finder(Session):
    """A session that shows three meta-tools. own: their names."""

    own: tuple[str, ...] = ("find", "show", "run")

    async def tools(self, servers: Servers) -> bytes:
        """The definitions of its own tools."""
        every = [{"name": name, "description": "", "inputSchema": _ANY} for name in self.own]
        return json.dumps({"tools": every}).encode()

    async def called(self, request: Request, servers: Servers) -> bytes:
        """The result of one of the three meta-tools."""
        params = members(request.params)
        given = members(params.get("arguments"))
        match text(params.get("name")):
            case "find":
                return text_result(await self.find(servers, text(given.get("query")), given.get("limit")))
            case "show":
                return await self.show(servers, text(given.get("tool")))
            case "run":
                server, own = own_name(text(given.get("tool")), servers.by_name)
                arguments = self.arguments(given)
                if arguments is None:
                    return text_result(
                        "The arguments are no JSON object: put one under 'arguments'.", failed=True
                    )
                inner = {**params, "name": quote(own), "arguments": arguments}
                return await self.run_tool(request, servers.by_name[server], join_object(inner))
            case name:
                raise self.invalid(f"There is no tool {name!r}; there are {', '.join(self.own)}.")

    def forward_notification(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """See `End.forward_notification`. Changes of tool lists aren't forwarded, because the meta-tools stay
        the same."""
        if method != "notifications/tools/list_changed":
            super().forward_notification(server, method, params, about, subscribed=subscribed)

    def arguments(self, given: dict[str, bytes]) -> bytes | None:
        """The arguments for the tool that ``run`` calls: an object, JSON text of an object, null, or members
        beside the tool's name. None if they are something else."""
        flat = without_members(join_object(given), ("tool", "arguments"))
        raw = given.get("arguments", flat)
        while raw.startswith(b'"'):
            raw = text(raw).encode()
        if raw == b"null":
            return b"{}"
        try:
            split_object(raw)
        except NotAnObject:
            return None
        return raw

    async def show(self, servers: Servers, tool: str) -> bytes:
        """A definition as its server wrote it, except for the name."""
        server, own = own_name(tool, servers.by_name)
        await listed(servers.by_name[server], "tools/list")
        raw = servers.by_name[server].tools.get(own)
        if raw is None:
            raise self.invalid(f"There is no tool {tool!r}; find it first.")
        return text_result(with_shown_key(raw, server, "name").decode())

    async def find(self, servers: Servers, query: str, limit: bytes | None) -> str:
        """One line for each tool, best first, and one for each server that is down."""
        every: dict[str, str] = {}
        for upstream in servers.by_name.values():
            for raw in await listed(upstream, "tools/list"):
                fields = members(raw)
                every[shown(upstream.name, text(fields.get("name")))] = text(fields.get("description"))
        found = self.ranked(query, every)
        if limit is not None:
            found = found[: int(limit)]
        lines = [f"{name}: {every[name]}" for name in found] or [self.nothing()]
        lines += [f"({name} is down)" for name, upstream in servers.by_name.items() if upstream.failure]
        return "\n".join(lines)

    def ranked(self, query: str, every: dict[str, str]) -> list[str]:
        """The names that match, best first: an exact name, otherwise by the number of query words, where
        words in the name count three times."""

        def score(name: str) -> int:
            if query in (name, name.partition(SEPARATOR)[2]):
                return 1000
            named, in_text = words(name), words(every[name])
            return sum(3 if word in named else word in in_text for word in words(query))

        scores = {name: score(name) for name in every}
        return sorted((name for name in every if scores[name]), key=lambda name: (-scores[name], name))

    def nothing(self) -> str:
        """The text of a search without matches."""
        return "Nothing matches; try other words."


def words(text: str) -> set[str]:
    """The words of a text in lower case, without a plural's s."""
    return {word.removesuffix("s") for word in re.findall("[a-z0-9]+", text.lower())}


def text_result(text: str, *, failed: bool = False) -> bytes:
    """A result that is one text block."""
    result: dict[str, object] = {"content": [{"type": "text", "text": text}]}
    return json.dumps(result | ({"isError": True} if failed else {})).encode()
