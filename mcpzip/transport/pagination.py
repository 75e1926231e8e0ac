"""Lists that come in pages (spec: server/utilities/pagination).

The rules: all pages are followed, whatever the cursors look like; a list that never ends, goes in circles, is
larger than any may be (`mcpzip.model.limits`) or makes no sense is an error, not half a list. Nothing of a
page is unpacked before it is known to be within the limits.
"""

import asyncio
import hashlib

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import UpstreamError, UpstreamListError, UpstreamRpcError
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import NOBODY, Origin
from mcpzip.transport.connection import Connection
from mcpzip.transport.health import Rest
from mcpzip.wire import METHOD_NOT_FOUND, quote
from mcpzip.wire.json_iter import has_more_elements
from mcpzip.wire.json_object import may_hold_surrogates, without_surrogates

_AT_ONCE = 1 << 20
"""Bytes of a page that are looked at on the event loop; a larger one is, in a thread."""


class _Head(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None
    ttl_ms: float | None = None


class _Page(msgspec.Struct, rename="camel"):
    """What of a page concerns us; whatever else stands in it is stepped over."""

    tools: msgspec.Raw = msgspec.Raw()
    prompts: msgspec.Raw = msgspec.Raw()
    resources: msgspec.Raw = msgspec.Raw()
    resource_templates: msgspec.Raw = msgspec.Raw()


class _Room:
    """What is left of the bytes that lists may have together."""

    def __init__(self) -> None:
        self._left = limits.LIST_BYTES

    def takes(self, size: int) -> bool:
        """Whether ``size`` bytes more still fit in."""
        self._left -= size
        return self._left >= 0


class _TooMany(Exception):
    """More elements than a list may have."""


async def all_pages(
    connection: Connection,
    method: str,
    key: str,
    timeout: float,
    origin: Origin = NOBODY,
    room: _Room | None = None,
) -> tuple[list[bytes], float | None]:
    """The elements of every page's ``key``, each as JSON text, and how many seconds they are good for if the
    server says so (spec 2026-07-28: server/utilities/caching). An element of over `limits.ITEM` bytes, which
    nobody reads, is cut one byte after that many.

    timeout: seconds a page may take. origin: on whose behalf. room: what it shares with other lists (default:
    with none). Raises UpstreamError and its kinds; UpstreamListError for a list over a limit.
    """
    name = connection.server.name
    what = "tool list" if key == "tools" else f"list of {key}"
    found: list[bytes] = []
    seen: set[bytes] = set()
    room = room or _Room()
    ttl: float | None = None
    cursor: str | None = None

    def too_much(of: str) -> UpstreamListError:
        return UpstreamListError(name, f"its {what} has {of}, which is more than is taken in")

    for _ in range(limits.LIST_PAGES):
        # An empty string is a cursor like any other.
        params = b"{}" if cursor is None else b'{"cursor":' + quote(cursor) + b"}"
        result = await connection.request(method, params, timeout=timeout, origin=origin)
        if not room.takes(len(result)):
            raise too_much(f"over {limits.LIST_BYTES:,} bytes")
        try:
            elements, head = await _unpacked(result, key, limits.LIST_ITEMS - len(found))
        except _TooMany:
            raise too_much(f"over {limits.LIST_ITEMS:,} items") from None
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
        if len(cursor) > limits.CURSOR:
            raise too_much(f"a cursor of {len(cursor):,} characters")
        mark = hashlib.blake2b(cursor.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if mark in seen:
            raise UpstreamError(name, f"its {what} goes in circles (cursor {quoted(cursor)} came twice)")
        seen.add(mark)
    raise too_much(f"over {limits.LIST_PAGES:,} pages")


async def all_the_rest(connection: Connection, timeout: float, origin: Origin) -> Rest:
    """What the server offers beside tools. timeout: seconds for each kind."""
    assert connection.greeting is not None, "listed before it was greeted"
    offers = connection.greeting.offers
    over: list[str] = []
    room = _Room()

    async def every(method: str, key: str, promised: object) -> tuple[bytes, ...] | None:
        if promised is None:
            return ()
        try:
            async with asyncio.timeout(timeout):
                return tuple((await all_pages(connection, method, key, timeout, origin, room))[0])
        except UpstreamRpcError as error:
            return () if error.code == METHOD_NOT_FOUND else None
        except UpstreamListError as error:
            over.append(f"{connection.server.name!r} can't be listed whole: {error.reason}.")
            return None
        except (UpstreamError, TimeoutError):
            return None

    prompts, resources, templates = await asyncio.gather(
        every("prompts/list", "prompts", offers.prompts),
        every("resources/list", "resources", offers.resources),
        every("resources/templates/list", "resourceTemplates", offers.resources),
    )
    return Rest(prompts, resources, templates, tuple(sorted(over)))


async def _unpacked(result: bytes, key: str, most: int) -> tuple[list[bytes] | None, _Head]:
    # With as many commas its elements may have to be counted, one by one.
    if len(result) <= _AT_ONCE and result.count(b",") < most:
        return _read(result, key, most)
    return await in_thread(lambda: _read(result, key, most), "page")


_page = msgspec.json.Decoder(_Page)
_heads = msgspec.json.Decoder(_Head)
_elements = msgspec.json.Decoder(list[msgspec.Raw])
_FIELDS = dict(zip(_Page.__struct_encode_fields__, _Page.__struct_fields__, strict=True))


def _read(result: bytes, key: str, most: int) -> tuple[list[bytes] | None, _Head]:
    """The elements of a page, and what stands beside them. Raises ValueError, and _TooMany for more than
    ``most`` elements.

    A text that one element spells as no JSON should (a lone surrogate) must not cost the others their place:
    what the strict decoder refuses is read with other escapes in its place, and each element stands for
    itself again.
    """
    try:
        return _strict(result, result, key, most)
    except msgspec.DecodeError:
        if not may_hold_surrogates(result):
            raise
    return _strict(without_surrogates(result), result, key, most)


def _strict(twin: bytes, result: bytes, key: str, most: int) -> tuple[list[bytes] | None, _Head]:
    """twin: ``result``, or a text that has everything in the very same place."""
    head = _heads.decode(twin)
    listed = getattr(_page.decode(twin), _FIELDS[key])
    if len(listed) in (0, 4) and bytes(listed) in (b"", b"null"):
        return None, head
    # Each element but the first stands after a comma: with few of them there is nothing to count.
    if twin.count(b",") >= most and has_more_elements(memoryview(listed), most):
        raise _TooMany
    found = _elements.decode(listed)
    if len(found) > most:
        raise _TooMany
    if twin is result:
        return list(map(_bounded, found)), head
    elements: list[bytes] = []
    start = twin.find(memoryview(listed))
    for number, element in enumerate(found):
        # Between two elements there are a comma and space, in which none can begin.
        start = twin.find(memoryview(element), start + 1 if number == 0 else start)
        elements.append(result[start : start + min(len(element), limits.ITEM + 1)])
        start += len(element)
    return elements, head


def _bounded(element: msgspec.Raw) -> bytes:
    """The text of ``element``; of one that is too large, as much as shows that it is."""
    return bytes(memoryview(element)[: limits.ITEM + 1])
