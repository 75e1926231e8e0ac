"""Faults of the relay's own three tools."""

import os
import re
from collections.abc import Mapping

from mcpzip.wire import Request
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.listing import listed
from mcpzip_conformance.mutants.relay.naming import SEPARATOR, shown, text
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.search import Finder
from mcpzip_conformance.mutants.relay.session import Servers


class DropsText(Finder):
    def arguments(self, given: dict[str, bytes]) -> bytes | None:
        return b"{}" if given.get("arguments", b"").startswith(b'"') else super().arguments(given)


class DropsFlat(Finder):
    def arguments(self, given: dict[str, bytes]) -> bytes | None:
        return super().arguments(given) if "arguments" in given else b"{}"


class ReadsTextOnce(Finder):
    def arguments(self, given: dict[str, bytes]) -> bytes | None:
        once = text(given.get("arguments")).encode()
        return b"{}" if once.startswith(b'"') else super().arguments(given)


class DropsOdd(Finder):
    def arguments(self, given: dict[str, bytes]) -> bytes | None:
        return super().arguments(given) or b"{}"


class IgnoresLimit(Finder):
    async def find(self, servers: Servers, query: str, limit: bytes | None) -> str:
        return await super().find(servers, query, None)


class SaysNothing(Finder):
    def nothing(self) -> str:
        return ""


class RanksByName(Finder):
    def ranked(self, query: str, every: dict[str, str]) -> list[str]:
        return sorted(super().ranked(query, every))


class WantsOrder(Finder):
    """Only the first word of a query counts."""

    def ranked(self, query: str, every: dict[str, str]) -> list[str]:
        return super().ranked(query if SEPARATOR in query else query.partition(" ")[0], every)


class Remembers(Finder):
    """Searches the tools that it knew at the first search."""

    first: frozenset[str] = frozenset()

    async def called(self, request: Request, servers: Servers) -> bytes:
        every = servers.by_name.values()
        for upstream in every if not self.first and all(upstream.up for upstream in every) else ():
            await listed(upstream, "tools/list")
            self.first |= {shown(upstream.name, name) for name in upstream.tools}
        return await super().called(request, servers)

    def ranked(self, query: str, every: dict[str, str]) -> list[str]:
        return super().ranked(query, {name: told for name, told in every.items() if name in self.first})


class Matches(Finder):
    """Uses a query as a regular expression, and dies of an invalid one."""

    def ranked(self, query: str, every: dict[str, str]) -> list[str]:
        try:
            re.compile(query)
        except re.error:
            os._exit(1)
        return super().ranked(query, every)


class WantsObject(Finder):
    def arguments(self, given: dict[str, bytes]) -> bytes | None:
        return None if given.get("arguments") == b"null" else super().arguments(given)


FAULTS: Mapping[str, Fault] = {
    "drops-text": Fault(
        "runs with {} when arguments are a string",
        "arguments.as-text",
        Parts(meta=DropsText),
        "meta",
        also=(
            "arguments.as-text-twice",
            "arguments.not-an-object",
        ),
    ),
    "drops-flat": Fault(
        "runs with {} when arguments are flat", "arguments.flat", Parts(meta=DropsFlat), "meta"
    ),
    "reads-text-once": Fault(
        "runs with {} when arguments are a string in a string",
        "arguments.as-text-twice",
        Parts(meta=ReadsTextOnce),
        "meta",
    ),
    "refuses-null": Fault("refuses null for arguments", "arguments.null", Parts(meta=WantsObject), "meta"),
    "forgets-new": Fault(
        "searches what there was at first", "search.new-tools", Parts(meta=Remembers), "meta"
    ),
    "matches": Fault(
        "exits on a query that is no regular expression", "search.hostile-query", Parts(meta=Matches), "meta"
    ),
    "drops-odd": Fault(
        "runs with {} when arguments are no object", "arguments.not-an-object", Parts(meta=DropsOdd), "meta"
    ),
    "ignores-limit": Fault("ignores the limit", "search.limit", Parts(meta=IgnoresLimit), "meta"),
    "finds-nothing": Fault(
        "answers with nothing when nothing matches", "search.no-match", Parts(meta=SaysNothing), "meta"
    ),
    "ranks-by-name": Fault("ranks by the alphabet", "search.exact-name", Parts(meta=RanksByName), "meta"),
    "wants-order": Fault("searches for the first word", "search.word-order", Parts(meta=WantsOrder), "meta"),
}
