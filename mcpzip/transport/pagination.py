"""Reading lists that come in pages (spec: server/utilities/pagination).

The rules: all pages are fetched, whatever the cursors look like; a list that never ends, repeats a cursor,
exceeds a limit (`mcpzip.model.limits`) or is malformed is an error, not half a list. A page is decoded only
after its size is known to be within the limits.
"""

import asyncio
import hashlib

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import (
    UpstreamError,
    UpstreamListError,
)
from mcpzip.model.quoting import quoted, shortened
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import NOBODY, Origin
from mcpzip.transport.connection import Connection
from mcpzip.transport.health import Rest
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    UpstreamRpcError,
    quote,
)
from mcpzip.wire.json_iter import has_more_elements
from mcpzip.wire.json_object import may_hold_surrogates, without_surrogates

_LARGE = 1 << 20
"""Bytes of a page from which on it is decoded in a thread."""


class _PageInfo(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None
    ttl_ms: float | None = None


class _Page(msgspec.Struct, rename="camel"):
    """The list in a page; other members are skipped."""

    tools: msgspec.Raw = msgspec.Raw()
    prompts: msgspec.Raw = msgspec.Raw()
    resources: msgspec.Raw = msgspec.Raw()
    resource_templates: msgspec.Raw = msgspec.Raw()


class _ByteBudget:
    """The bytes that several lists may have together."""

    def __init__(self) -> None:
        self._left = limits.LIST_BYTES

    def spend(self, size: int) -> bool:
        """Takes ``size`` bytes from the budget. Returns False when it is exceeded."""
        self._left -= size
        return self._left >= 0


class _TooManyError(Exception):
    """More elements than a list may have."""


async def all_pages(
    connection: Connection,
    method: str,
    key: str,
    timeout: float,
    origin: Origin = NOBODY,
    budget: _ByteBudget | None = None,
) -> tuple[list[bytes], float | None]:
    """The elements of every page's ``key``, each as JSON text, and the seconds for which the server says they
    stay valid, if it does (spec 2026-07-28: server/utilities/caching). An element of over `limits.ITEM` bytes
    is cut one byte after that many, because it is rejected anyway.

    timeout: seconds for each page. budget: shared with other lists (default: with none). Raises UpstreamError
    and its subclasses; UpstreamListError for a list over a limit.
    """
    name = connection.server.name
    what = "tool list" if key == "tools" else f"list of {key}"
    found: list[bytes] = []
    seen: set[bytes] = set()
    budget = budget or _ByteBudget()
    ttl: float | None = None
    cursor: str | None = None

    def over_limit(of: str) -> UpstreamListError:
        return UpstreamListError(name, f"its {what} has {of}, which is more than is taken in")

    for _ in range(limits.LIST_PAGES):
        # An empty string is a valid cursor.
        params = b"{}" if cursor is None else b'{"cursor":' + quote(cursor) + b"}"
        result = await connection.request(method, params, timeout=timeout, origin=origin)
        if not budget.spend(len(result)):
            raise over_limit(f"over {limits.LIST_BYTES:,} bytes")
        try:
            elements, info = await _decoded(result, key, limits.LIST_ITEMS - len(found))
        except _TooManyError:
            raise over_limit(f"over {limits.LIST_ITEMS:,} items") from None
        except (ValueError, RecursionError) as error:
            raise UpstreamError(name, f"its {what} makes no sense ({shortened(str(error))})") from error
        if elements is None:
            raise UpstreamError(name, f"its {what} has no {key!r}")
        found.extend(elements)
        if info.ttl_ms is not None and info.ttl_ms >= 0:
            ttl = info.ttl_ms / 1000
        cursor = info.next_cursor
        if cursor is None:
            return found, ttl
        if len(cursor) > limits.CURSOR:
            raise over_limit(f"a cursor of {len(cursor):,} characters")
        digest = hashlib.blake2b(cursor.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in seen:
            raise UpstreamError(name, f"its {what} goes in circles (cursor {quoted(cursor)} came twice)")
        seen.add(digest)
    raise over_limit(f"over {limits.LIST_PAGES:,} pages")


async def all_the_rest(connection: Connection, timeout: float, origin: Origin) -> Rest:
    """The server's prompts, resources and resource templates. timeout: seconds for each list."""
    assert connection.server_info is not None, "the connection is not ready"
    offers = connection.server_info.offers
    over: list[str] = []
    budget = _ByteBudget()

    async def read(method: str, key: str, capability: object) -> tuple[bytes, ...] | None:
        if capability is None:
            return ()
        try:
            async with asyncio.timeout(timeout):
                return tuple((await all_pages(connection, method, key, timeout, origin, budget))[0])
        except UpstreamRpcError as error:
            return () if error.error.code == METHOD_NOT_FOUND else None
        except UpstreamListError as error:
            over.append(f"{connection.server.name!r} can't be listed whole: {error.reason}.")
            return None
        except (UpstreamError, TimeoutError):
            return None

    prompts, resources, templates = await asyncio.gather(
        read("prompts/list", "prompts", offers.prompts),
        read("resources/list", "resources", offers.resources),
        read("resources/templates/list", "resourceTemplates", offers.resources),
    )
    return Rest(prompts, resources, templates, tuple(sorted(over)))


async def _decoded(result: bytes, key: str, most: int) -> tuple[list[bytes] | None, _PageInfo]:
    # With that many commas the elements may have to be counted one by one, which is slow.
    if len(result) <= _LARGE and result.count(b",") < most:
        return _elements(result, key, most)
    return await in_thread(lambda: _elements(result, key, most), "page")


_page_decoder = msgspec.json.Decoder(_Page)
_info_decoder = msgspec.json.Decoder(_PageInfo)
_list_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_FIELDS = dict(zip(_Page.__struct_encode_fields__, _Page.__struct_fields__, strict=True))


def _elements(result: bytes, key: str, most: int) -> tuple[list[bytes] | None, _PageInfo]:
    """The elements of a page, and the page's other members. Raises ValueError, and _TooManyError for more
    than ``most`` elements.

    One element with an escaped lone surrogate, which the decoder refuses, must not make the whole list
    unreadable. So the decoder reads a copy in which such escapes are replaced by others of the same length,
    and the elements are cut from the original at the same offsets.
    """
    try:
        return _slices(result, result, key, most)
    except msgspec.DecodeError:
        if not may_hold_surrogates(result):
            raise
    return _slices(without_surrogates(result), result, key, most)


def _slices(copy: bytes, result: bytes, key: str, most: int) -> tuple[list[bytes] | None, _PageInfo]:
    """The elements as slices of ``result``. copy: ``result``, or a valid text with the same offsets."""
    info = _info_decoder.decode(copy)
    listed = getattr(_page_decoder.decode(copy), _FIELDS[key])
    if len(listed) in (0, 4) and bytes(listed) in (b"", b"null"):
        return None, info
    # Every element but the first follows a comma, so with few commas there is no need to count.
    if copy.count(b",") >= most and has_more_elements(memoryview(listed), most):
        raise _TooManyError
    found = _list_decoder.decode(listed)
    if len(found) > most:
        raise _TooManyError
    if copy is result:
        return list(map(_bounded, found)), info
    elements: list[bytes] = []
    start = copy.find(memoryview(listed))
    for number, element in enumerate(found):
        # Only a comma and whitespace are between two elements, so the next match is the next element.
        start = copy.find(memoryview(element), start + 1 if number == 0 else start)
        elements.append(result[start : start + min(len(element), limits.ITEM + 1)])
        start += len(element)
    return elements, info


def _bounded(element: msgspec.Raw) -> bytes:
    """The text, cut one byte after the limit; the extra byte shows that it is too large."""
    return bytes(memoryview(element)[: limits.ITEM + 1])
