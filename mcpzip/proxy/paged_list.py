"""A list that a client asks for page by page.

The rule: a page ends by size, and its cursor says which name it ended with, not where. So a list that changes
between two pages loses and repeats nothing that was there all along (spec: server/utilities/pagination).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from hashlib import blake2b

from mcpzip.model.errors import InvalidCursorError
from mcpzip.wire import quote

PAGE = 256 * 1024
"""Bytes of elements on a page, but for one that is bigger by itself. SDK clients refuse an event of more than
1 MiB.
"""

_CHECK = 4


class PagedList:
    """The results of one list method.

    member: of the result, where the elements stand (``tools``). keys: one an element, all different; they are
    shown in this order of theirs. element: the JSON text of the one with this key. opening: elements before
    all of these, which have no key and stand on the first page.
    """

    def __init__(
        self,
        member: str,
        keys: Iterable[str],
        element: Callable[[str], bytes],
        opening: Sequence[bytes] = (),
    ) -> None:
        self._member, self._element, self._opening = member, element, opening
        self._keys = sorted(keys)

    def page(self, cursor: str | None = None) -> bytes:
        """The result, as JSON text, for ``cursor``: None for the first page. Raises InvalidCursorError."""
        if cursor is None:
            return self._first
        return self._page(bisect_right(self._keys, self._key(cursor)), ())

    @cached_property
    def _first(self) -> bytes:
        return self._page(0, self._opening)

    def _page(self, start: int, opening: Sequence[bytes]) -> bytes:
        elements = list(opening)
        room = PAGE - sum(map(len, elements))
        end = start
        while end < len(self._keys):
            element = self._element(self._keys[end])
            room -= len(element)
            if room < 0 and end > start:
                break
            elements.append(element)
            end += 1
        after = b',"nextCursor":"%b"' % self._cursor(self._keys[end - 1]) if end < len(self._keys) else b""
        return b"{%b:[%b]%b}" % (quote(self._member), b",".join(elements), after)

    def _cursor(self, key: str) -> bytes:
        text = key.encode("utf-8", "surrogatepass")
        return (self._check(text) + text).hex().encode()

    def _key(self, cursor: str) -> str:
        try:
            said = bytes.fromhex(cursor)
            key = said[_CHECK:].decode("utf-8", "surrogatepass")
        except ValueError:
            raise InvalidCursorError from None
        if said.hex() != cursor or said[:_CHECK] != self._check(said[_CHECK:]):
            raise InvalidCursorError
        return key

    def _check(self, text: bytes) -> bytes:
        """A few bytes that tell this list's cursors from another's, and from what is none."""
        return blake2b(text, digest_size=_CHECK, person=self._member.encode()[:16]).digest()
