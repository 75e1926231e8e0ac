"""Large results are kept: the client gets the beginning, and the whole with the tool ``rest``.

The rule: the kept result is the server's, byte for byte. What is cut says so, in the text and in
``structuredContent``; all else of the result is in the first answer.
"""

from mcpzip.wire import Request, join_object, quote, with_members
from mcpzip_conformance.mutants.relay.naming import items, members, text
from mcpzip_conformance.mutants.relay.search import Finder
from mcpzip_conformance.mutants.relay.session import Config, Servers, Write
from mcpzip_conformance.mutants.relay.upstream import Upstream

DECLARED = "anthropic/maxResultSizeChars"
LIMIT = 20_000
"""Bytes of a result that are sent at once."""
BEGINNING = 500
"""Characters of a text that are shown of a kept result."""


class Keeper(Finder):
    """A session that keeps large results. kept: by handle."""

    own = (*Finder.own, "rest")

    def __init__(self, config: Config, write: Write, shared: Servers | None = None) -> None:
        super().__init__(config, write, shared)
        self.kept: dict[str, bytes] = {}

    async def called(self, request: Request, servers: Servers) -> bytes:
        """The result of one of its own tools."""
        params = members(request.params)
        if text(params.get("name")) != "rest":
            return await super().called(request, servers)
        handle = text(members(params.get("arguments")).get("handle"))
        if handle not in self.kept:
            raise self.invalid(f"No result is kept as {handle!r}.")
        return await self.rest(handle)

    async def rest(self, handle: str) -> bytes:
        """The whole of a kept result."""
        return self.kept[handle]

    async def run_tool(self, request: Request, upstream: Upstream, params: bytes) -> bytes:
        """The first answer to a call."""
        result = await super().run_tool(request, upstream, params)
        if len(result) <= max(LIMIT, self.declared(upstream, text(members(params).get("name")))):
            return result
        handle = f"k{len(self.kept) + 1}"
        self.kept[handle] = result
        return self.beginning(result, handle)

    def declared(self, upstream: Upstream, tool: str) -> int:
        """The size of results that a tool wants to be sent whole, in bytes: two for each character."""
        meta = members(members(upstream.tools.get(tool)).get("_meta"))
        characters = meta.get(DECLARED, b"")
        return 2 * int(characters) if characters.isdigit() else 0

    def beginning(self, result: bytes, handle: str) -> bytes:
        """The beginning of a result, with the handle of the whole."""
        said = f"Kept as {handle}; the tool rest gives all of it. It begins:\n"
        blocks = [bytes(block) for block in items(members(result).get("content", b"[]"))]
        others = [block for block in blocks if not written(block)]
        first = b"\n".join(map(written, blocks)).decode("utf-8", "surrogatepass")[:BEGINNING]
        head = join_object({"type": b'"text"', "text": quote(said + first)})
        changed = {"content": b"[%b]" % b",".join([head, *others])}
        if len(members(result).get("structuredContent", b"")) > BEGINNING:
            changed["structuredContent"] = join_object({"kept": quote(said + first)})
        return with_members(result, changed)


def written(block: bytes) -> bytes:
    """The text of a content block or of the resource in it; b"" if it has none."""
    fields = members(block)
    held = fields if text(fields.get("type")) == "text" else members(fields.get("resource"))
    return text(held.get("text")).encode("utf-8", "surrogatepass")
