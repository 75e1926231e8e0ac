"""The lists of all servers as one.

The rule: a list is requested when it is needed, with all pages, and a server that is not up, fails or is slow
does not hide the lists of others. When a missing server comes up, the client is notified that the list has
changed.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mcpzip.wire import Request, quote, with_members
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.naming import (
    SCHEME,
    items,
    members,
    shown,
    shown_uri,
    text,
    with_shown_uri,
)
from mcpzip_conformance.mutants.relay.upstream import Upstream

PATIENCE = 5.0
"""Seconds that one server's list may take."""
_PAGES, _BYTES = 1000, 4 << 20
"""Of one server's list: what is beyond is not asked for."""


class Kind(NamedTuple):
    """A kind of list. capability: of servers that have it; member: its name in the result; key: the member of
    a definition by which clients request it."""

    capability: str
    member: str
    key: str


LISTS = {
    "tools/list": Kind("tools", "tools", "name"),
    "prompts/list": Kind("prompts", "prompts", "name"),
    "resources/list": Kind("resources", "resources", "uri"),
    "resources/templates/list": Kind("resources", "resourceTemplates", "uriTemplate"),
}


async def merged(upstreams: Iterable[Upstream], method: str) -> bytes:
    """The result of a listing, with the clients' names."""
    kind = LISTS[method]
    every = list(upstreams)
    lists = await asyncio.gather(*(listed(upstream, method) for upstream in every))
    definitions = [
        with_shown_key(definition, upstream.name, kind.key)
        for upstream, definitions in zip(every, lists, strict=True)
        for definition in definitions
    ]
    return b'{"%b":[%b]}' % (kind.member.encode(), b",".join(definitions))


async def listed(upstream: Upstream, method: str) -> list[bytes]:
    """The definitions of one server, of all pages; none if listing fails."""
    kind = LISTS[method]
    link = upstream.up
    if link is None:
        upstream.missed.add(kind.capability)
        return []
    if kind.capability not in link.capabilities:
        return []
    definitions: list[bytes] = []
    try:
        async with asyncio.timeout(PATIENCE):
            params, size = None, 0
            for _ in range(_PAGES):
                raw = await link.ask(method, params)
                page, size = members(raw), size + len(raw)
                definitions += map(bytes, items(page.get(kind.member, b"[]")))
                if page.get("nextCursor", b"null") == b"null" or size > _BYTES:
                    break
                params = b'{"cursor":%b}' % page["nextCursor"]
    except (RefusedError, TimeoutError):
        upstream.missed.add(kind.capability)
    if kind.member == "tools":
        upstream.tools = {name_of(raw): raw for raw in definitions}
    return definitions


async def has_tool(upstream: Upstream, name: str) -> bool:
    """Whether a server has the tool. If it isn't known, the server is listed again."""
    if name not in upstream.tools:
        await listed(upstream, "tools/list")
    return name in upstream.tools


async def with_server(
    request: Request, upstreams: Iterable[Upstream], named: Mapping[str, str]
) -> bytes | None:
    """The params of a request, with the server added to a URI that lacks it, as URIs in results do. The
    server is the one whose result had the URI (``named``), otherwise one that lists it."""
    uri = text(members(request.params).get("uri"))
    if uri in named:
        return with_shown_uri(request.params or b"{}", named[uri])
    for upstream in upstreams if uri and not uri.startswith(SCHEME) else ():
        for definition in await listed(upstream, "resources/list"):
            if text(members(definition).get("uri")) == uri:
                return with_shown_uri(request.params or b"{}", upstream.name)
    return request.params


def with_shown_key(definition: bytes, server: str, key: str) -> bytes:
    """A definition with the client's name or URI."""
    own = text(members(definition).get(key))
    named = shown(server, own) if key == "name" else shown_uri(server, own)
    return with_members(definition, {key: quote(named)}) if members(definition) else definition


def name_of(definition: bytes) -> str:
    """The name in a definition."""
    return text(members(definition).get("name"))
