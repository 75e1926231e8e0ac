"""A result that mcpzip keeps, read part by part on the page of its tool (pure).

The rule: a part has `PART` characters at most, however large the result is.
"""

import re

import msgspec

from mcpzip.model import sanitize
from mcpzip.proxy.exchange import members
from mcpzip.results.reply import META
from mcpzip.ui.rendering import ShownText
from mcpzip.wire import NotAnObject, join_object, quote, split_object, unquote

PART = 8_000
"""Characters of a part."""
_HANDLE = re.compile(r"r[0-9]{1,9}-[a-z2-7]{16,160}")
_PLACE = re.compile(r"Characters ([0-9,]{1,13}) to ([0-9,]{1,13}) of ([0-9,]{1,13})\.")
"""How the note of such a part begins (`results.reading`)."""


class KeptPart(msgspec.Struct, frozen=True):
    """Characters ``first`` to ``last`` of ``total``. text: sanitized. before, after: where the parts before
    and after it begin, 0 for none.
    """

    handle: str
    text: ShownText
    first: int
    last: int
    total: int

    @property
    def before(self) -> int:
        return max(1, self.first - PART) if self.first > 1 else 0

    @property
    def after(self) -> int:
        return self.last + 1 if self.last < self.total else 0


class _Content(msgspec.Struct):
    text: str = ""


class _Result(msgspec.Struct):
    content: list[_Content] = []
    is_error: bool = msgspec.field(default=False, name="isError")


def handle_of(result: bytes) -> str:
    """The handle of ``result`` (a `CallToolResult`, JSON text), if it says that it is kept; else ""."""
    try:
        said = members(members(split_object(result).get("_meta")).get(META)).get("handle", b"")
        handle = unquote(said)
    except (NotAnObject, ValueError, RecursionError):
        return ""
    return handle if is_handle(handle) else ""


def is_handle(text: str) -> bool:
    """Whether ``text`` can be a handle."""
    return _HANDLE.fullmatch(text) is not None


def arguments_of(first: int) -> bytes:
    """What `execute_tool` is asked for the part that begins at the character ``first``."""
    return join_object({"chars": quote(f"{first}-{first + PART - 1}")})


def kept_part(handle: str, result: bytes) -> KeptPart | str:
    """The part in ``result``, which answers `arguments_of`; or what it says instead."""
    try:
        found = msgspec.json.decode(result, type=_Result)
    except (msgspec.DecodeError, RecursionError):
        found = _Result()
    texts = [one.text for one in found.content]
    place = None if found.is_error or len(texts) < 2 else _PLACE.match(texts[-1])
    if place is None:
        return sanitize.lines("\n".join(texts) or "The answer can't be read.", PART)
    first, last, total = (int(number.replace(",", "")) for number in place.groups())
    return KeptPart(handle, ShownText(sanitize.lines(texts[0], PART)), first, last, total)
