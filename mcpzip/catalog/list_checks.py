"""Checks of a server's lists, capabilities and ``serverInfo``.

The rules: an item that can't be used is left out alone, with a warning. An item that passes can be read from
the snapshot later; items with ``stored`` come from there, so this isn't checked again.
"""

from collections.abc import Iterable

import msgspec

from mcpzip.catalog.parts import Parts
from mcpzip.model import limits
from mcpzip.model.errors import InvalidOfferError
from mcpzip.model.offers import Kind, key_of
from mcpzip.model.quoting import shortened
from mcpzip.wire.json_iter import WHITESPACE

_MANY_BRACKETS = 400
"""Opening brackets of a text that may be nested too deeply for msgspec in the snapshot."""
_SNAPSHOT_DEPTH = 64
"""Arrays that a text is wrapped in for that check: more levels than the snapshot has around it."""

TOO_LARGE = f"is larger than {limits.ITEM:,} bytes"


class Problems:
    """Warnings about one server's lists: distinct sentences, `limits.WARNINGS` at most, then a count."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}
        self._more = 0

    def append(self, sentence: str) -> None:
        """Adds ``sentence`` unless it is there already."""
        if len(self._sentences) < limits.WARNINGS:
            self._sentences[sentence] = None
        elif sentence not in self._sentences:
            self._more += 1

    def sentences(self) -> tuple[str, ...]:
        """The sentences, and one with the number of those left out."""
        more = f"{self._more:,} more things like these are wrong."
        return (*self._sentences, *([more] if self._more else ()))


def cut(text: str, longest: int) -> str:
    """``text``, cut with ``…`` if it has more than ``longest`` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def checked_offers(
    kind: Kind, server: str, raws: Iterable[bytes], warnings: Problems, *, stored: bool = False
) -> tuple[bytes, ...]:
    """The usable items of a list of ``kind``, each once, sorted by key. raws: the items as JSON texts."""
    offers: dict[str, bytes] = {}
    for raw in (raw.strip(WHITESPACE) for raw in raws):
        try:
            if len(raw) > limits.ITEM:
                raise InvalidOfferError(f"a {kind.word} of {server!r} {TOO_LARGE}")
            if not stored and (nested := nested_more(raw)):
                key_of(kind, server, b'{"%b":"_","_":%b}' % (kind.key.encode(), nested))
            key = key_of(kind, server, raw)
        except InvalidOfferError as error:
            warnings.append(f"{error}; it is left out.")
            continue
        if key in offers:
            warnings.append(
                f"{server!r} lists the {kind.word} {shortened(key)!r} more than once; the first is used."
            )
        else:
            offers[key] = raw
    return Parts(offers[key] for key in sorted(offers))


def checked_object(what: str, server: str, raw: bytes, warnings: Problems, *, stored: bool = False) -> bytes:
    """``raw``, the server's ``what`` ("capabilities", "serverInfo"), if it is a JSON object of at most
    `limits.SELF` bytes; otherwise b"", with a warning unless ``raw`` is empty.
    """
    raw = raw.strip(WHITESPACE)
    if len(raw) > limits.SELF:
        warnings.append(
            f"the field {what!r} of {server!r} is larger than {limits.SELF:,} bytes; it is left out."
        )
        return b""
    nested = None if stored else nested_more(raw)
    if not raw or (raw.startswith(b"{") and _is_json(raw) and (nested is None or _is_json(nested))):
        return raw
    warnings.append(f"the field {what!r} of {server!r} is not a JSON object; it is left out.")
    return b""


def nested_more(raw: bytes) -> bytes | None:
    """``raw`` in more levels of arrays than the snapshot puts around it, to check that msgspec reads it
    there: a text that it doesn't read would make the whole snapshot unreadable. None if ``raw`` can't be that
    deep.
    """
    if raw.count(b"{") + raw.count(b"[") <= _MANY_BRACKETS:
        return None
    return b"[" * _SNAPSHOT_DEPTH + raw + b"]" * _SNAPSHOT_DEPTH


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
