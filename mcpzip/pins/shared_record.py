"""The pins of one server as they lie in a store that processes share (pure).

The rules: a value is compressed, and sealed by whoever writes it (`mcpzip.store.sealed_table`). Pins that are
too large for one value, and all texts, are in parts, which are values of their own. A part is called after
its server and its content, so that it has no other content under its name, and a reader has either the parts
of one writing or of another.

    {"format":"mcpzip-shared-pins","version":1,"server":"github","pins":{…},"pin_parts":[],"text_parts":["…"]}
"""

import hashlib
import zlib
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from mcpzip.model import limits
from mcpzip.pins.record import ServerPins
from mcpzip.store.sealed_table import LARGEST_VALUE
from mcpzip.system.formats import Format, Head, UnusableError

FORMAT = Format("mcpzip-shared-pins", 1, "a value with pins")
EARLIER = 100
"""Marks of earlier values that a value has."""
_HEAD = 65_536
"""Bytes that are left for all else than the pins."""
T = TypeVar("T")


class SharedRecord(Head):
    """What lies in the store of a server. server: its key (`pins.store.server_key`). pins: None if they are
    in parts, or if the server counts as never listed. pin_parts, text_parts: the names of the parts, in their
    order. earlier: the marks (`short`) of the values before it, the latest last. renewed: when a person had
    the pins made anew, Unix microseconds; 0 for never.
    """

    server: str
    pins: ServerPins | None
    pin_parts: tuple[str, ...] = ()
    text_parts: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    renewed: int = 0

    @property
    def parts(self) -> frozenset[str]:
        """The names of all parts."""
        return frozenset((*self.pin_parts, *self.text_parts))


Parts = Mapping[str, bytes]
"""The content of parts, by name."""


def name_of(server: str) -> str:
    """The name of the value of the server with this key."""
    return hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()


def encode(
    server: str,
    pins: ServerPins | None,
    text_parts: tuple[str, ...],
    earlier: tuple[str, ...] = (),
    renewed: int = 0,
) -> tuple[bytes, SharedRecord, Parts]:
    """The value of a server; what it says; and the parts that its pins are in. Raises ValueError for pins
    that are too large. The rest: see `SharedRecord`.
    """
    raw = msgspec.json.encode(pins)
    if len(raw) > limits.SHARED_PINS - _HEAD:
        raise ValueError(f"its pins are {len(raw):,} bytes long, and {limits.SHARED_PINS:,} is the most")
    more = text_parts, earlier[-EARLIER:], renewed
    record = SharedRecord(FORMAT.name, FORMAT.version, server, pins, (), *more)
    data = zlib.compress(msgspec.json.encode(record))
    if len(data) <= LARGEST_VALUE:
        return data, record, {}
    parts = divided(server, raw)
    record = SharedRecord(FORMAT.name, FORMAT.version, server, None, tuple(parts), *more)
    return zlib.compress(msgspec.json.encode(record)), record, parts


def short(mark: str) -> str:
    """A `Sealed.mark` as it is written down in later values."""
    return mark[:16]


def follows(record: SharedRecord, counter: int, mark: str) -> bool:
    """Whether ``record`` was made of the value with this counter and mark, or by a person after it, as far as
    it has that many earlier ones.
    """
    return record.renewed > counter or short(mark) in record.earlier or len(record.earlier) >= EARLIER


def decode(data: bytes, server: str) -> SharedRecord:
    """Raises UnusableError."""
    record = FORMAT.decode(_unpacked(data, limits.SHARED_PINS), SharedRecord)
    if record.server != server:
        raise UnusableError(f"is of another server ({record.server[:40]!r})")
    return record


def divided(server: str, raw: bytes) -> Parts:
    """``raw`` in parts, in their order."""
    packed, begin = zlib.compress(raw), prefix_of(server)
    pieces = [packed[at : at + LARGEST_VALUE] for at in range(0, len(packed), LARGEST_VALUE)]
    return {f"{begin}.{hashlib.sha256(piece).hexdigest()}": piece for piece in pieces}


def prefix_of(server: str) -> str:
    """With what the names of all parts of the server with this key begin, before a full stop."""
    return name_of(server)[:32]


def joined(pieces: list[bytes], shape: type[T], most: int) -> T:
    """What was `divided`, as JSON. Raises UnusableError."""
    return FORMAT.decode_as(_unpacked(b"".join(pieces), most), shape)


def texts_to_keep(pins: ServerPins, known: Mapping[bytes, bytes]) -> bytes:
    """Those of the texts ``known``, by digest, that ``pins`` need, as JSON: first of all those of what is
    offered or held, then, as long as there is room, earlier ones.
    """
    current = {each.digest for each in pins.held.values()}
    current |= {pin.digest for pin in pins.pins.values() if pin.gone is None}
    kept: dict[str, msgspec.Raw] = {}
    room = limits.SHARED_PIN_TEXTS - 1_024
    # In an order, so that two processes that keep the same texts write the same parts.
    for digest in (*sorted(current), *sorted(pins.digests() - current)):
        if (text := known.get(digest)) is not None and len(text) + 70 <= room:
            kept[digest.hex()] = msgspec.Raw(text)
            room -= len(text) + 70
    return msgspec.json.encode(kept)


def texts_of(pieces: list[bytes]) -> dict[bytes, bytes]:
    """The texts, by digest; they may be wrong. Raises UnusableError."""
    found = joined(pieces, dict[str, msgspec.Raw], limits.SHARED_PIN_TEXTS)
    try:
        return {bytes.fromhex(digest): bytes(text) for digest, text in found.items()}
    except ValueError as error:
        raise UnusableError(f"is damaged ({error})") from None


def _unpacked(data: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(data, most + 1)
    except zlib.error as error:
        raise UnusableError(f"is damaged ({error})") from None
    if not unpacker.eof:
        raise UnusableError("is damaged, or too large")
    return raw
