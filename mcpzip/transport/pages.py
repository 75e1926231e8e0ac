"""Lists that come in pages (spec: server/utilities/pagination).

The rule: all pages are followed, whatever the cursors look like; a list that never ends, goes in circles or
makes no sense is an error, not half a list.
"""

import json

import msgspec

from mcpzip.model.errors import UpstreamError
from mcpzip.model.quoting import quoted, shortened
from mcpzip.transport.base import NOBODY, Origin
from mcpzip.transport.connection import Connection
from mcpzip.wire import quote

MAX_PAGES = 1_000


class _Head(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None
    ttl_ms: float | None = None


async def all_pages(
    connection: Connection, method: str, key: str, timeout: float, origin: Origin = NOBODY
) -> tuple[list[bytes], float | None]:
    """The elements of every page's ``key``, each as JSON text, and how many seconds they are good for if the
    server says so (spec 2026-07-28: server/utilities/caching).

    timeout: seconds a page may take. origin: on whose behalf. Raises UpstreamError and its kinds.
    """
    name = connection.server.name
    what = "tool list" if key == "tools" else f"list of {key}"
    found: list[bytes] = []
    seen: set[str] = set()
    ttl: float | None = None
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        # An empty string is a cursor like any other.
        params = b"{}" if cursor is None else b'{"cursor":' + quote(cursor) + b"}"
        result = await connection.request(method, params, timeout=timeout, origin=origin)
        try:
            elements, head = _read(result, key)
        except (ValueError, RecursionError) as error:
            raise UpstreamError(name, f"its {what} makes no sense ({shortened(str(error))})") from error
        if elements is None:
            raise UpstreamError(name, f"its {what} has no {key!r}")
        found.extend(elements)
        if head.ttl_ms is not None and head.ttl_ms >= 0:
            ttl = head.ttl_ms / 1000
        cursor = head.next_cursor
        if cursor is None:
            return found, ttl
        if cursor in seen:
            raise UpstreamError(name, f"its {what} goes in circles (cursor {quoted(cursor)} came twice)")
        seen.add(cursor)
    raise UpstreamError(name, f"its {what} has more than {MAX_PAGES:,} pages")


_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])


def _read(result: bytes, key: str) -> tuple[list[bytes] | None, _Head]:
    """The elements of a page, and what stands beside them. Raises ValueError.

    A text that one element spells as no JSON should (a lone surrogate) must not cost the others their place:
    what the strict decoder refuses is read by the lenient one, and each element stands for itself again.
    """
    try:
        members = _members.decode(result)
        listed = members.get(key)
        elements = None if listed is None else [bytes(one) for one in _elements.decode(listed)]
        return elements, msgspec.convert(
            {name: msgspec.json.decode(members[name]) for name in ("nextCursor", "ttlMs") if name in members},
            type=_Head,
        )
    except msgspec.DecodeError:
        lenient = json.loads(result)
    if not isinstance(lenient, dict):
        raise ValueError("it is no object")
    page = lenient.get(key)
    if page is not None and not isinstance(page, list):
        raise ValueError(f"{key!r} is no list")
    head = msgspec.convert({k: lenient.get(k) for k in ("nextCursor", "ttlMs")}, type=_Head)
    return None if page is None else [json.dumps(one).encode() for one in page], head
