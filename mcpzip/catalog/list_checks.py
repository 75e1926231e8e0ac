"""What servers say, checked before it is kept.

The rules: what can't be used costs itself only, and a warning; what is kept can be read back from the
snapshot.

``kept`` is said of what comes from there: it need not fit in once more.
"""

from collections.abc import Iterable

import msgspec

from mcpzip.catalog.parts import Parts
from mcpzip.model import limits
from mcpzip.model.errors import InvalidOfferError
from mcpzip.model.offers import Kind, key_of
from mcpzip.model.quoting import shortened
from mcpzip.wire.json_iter import WHITESPACE

"""What may stand around a JSON text (RFC 8259, 2)."""

_DEEP, _ROOM = 400, 64


class Problems:
    """What is wrong with what one server says: sentences, each once; of many the first and how many more."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._more = 0

    def append(self, sentence: str) -> None:
        """One more, if it is another."""
        if len(self._said) < limits.WARNINGS:
            self._said[sentence] = None
        elif sentence not in self._said:
            self._more += 1

    def sentences(self) -> tuple[str, ...]:
        """All that is to be told."""
        return (*self._said, *([f"{self._more:,} more things like these are wrong."] if self._more else ()))


def cut(text: str, most: int) -> str:
    """``text``, of ``most`` characters at most."""
    return text if len(text) <= most else text[: most - 1] + "…"


def too_large(raw: bytes) -> bool:
    """Whether ``raw``, a tool or another offer, is larger than any may be."""
    return len(raw) > limits.ITEM


TOO_LARGE = f"is larger than {limits.ITEM:,} bytes"


def checked(
    kind: Kind, server: str, raws: Iterable[bytes], warnings: Problems, *, kept: bool = False
) -> tuple[bytes, ...]:
    """Those of ``raws``, which ``server`` listed, that are of this kind, each once, by key."""
    offers: dict[str, bytes] = {}
    for raw in (raw.strip(WHITESPACE) for raw in raws):
        try:
            if too_large(raw):
                raise InvalidOfferError(f"a {kind.word} of {server!r} {TOO_LARGE}")
            if not kept and (nested := deeper(raw)):
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


def checked_object(what: str, server: str, raw: bytes, warnings: Problems, *, kept: bool = False) -> bytes:
    """``raw``, what ``server`` says of itself; b"" when it says nothing, or what is not a JSON object."""
    raw = raw.strip(WHITESPACE)
    if len(raw) > limits.SELF:
        warnings.append(
            f"what {server!r} says of its {what} is larger than {limits.SELF:,} bytes; it is left out."
        )
        return b""
    nested = None if kept else deeper(raw)
    if not raw or (raw.startswith(b"{") and _is_json(raw) and (nested is None or _is_json(nested))):
        return raw
    warnings.append(f"what {server!r} says of its {what} is not a JSON object; it is left out.")
    return b""


def deeper(raw: bytes) -> bytes | None:
    """``raw`` as deep as it lies in the snapshot and deeper, where that can matter; None where it can't.

    Nested nearly too deeply it would cost us everything else there.
    """
    if raw.count(b"{") + raw.count(b"[") <= _DEEP:
        return None
    return b"[" * _ROOM + raw + b"]" * _ROOM


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
