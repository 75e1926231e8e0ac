"""A file of numbers and texts that is used in place.

The rule: a file is either whole, which its checksum says, or refused; what is in its sections is for whoever
reads them to check.

    magic, 4 bytes · <II bytes of the header, CRC-32 of all that follows · header: JSON, padded with spaces
                   · the sections, in the order of the header, each padded to eight bytes
"""

import zlib
from collections.abc import Mapping
from struct import Struct
from typing import TypeVar

import msgspec

_START = Struct("<4sII")
_ALIGNMENT = 8  # bytes


class Header(msgspec.Struct):
    """sections: the bytes of each, in their order."""

    sections: dict[str, int]


H = TypeVar("H", bound=Header)


def joined(magic: bytes, header: Header, sections: Mapping[str, bytes]) -> bytes:
    """The file with these ``sections``, which are set in the ``header`` too. magic: 4 bytes."""
    header.sections = {name: len(data) for name, data in sections.items()}
    head = _padded(msgspec.json.encode(header))
    body = b"".join((head, *map(_padded, sections.values())))
    return _START.pack(magic, len(head), zlib.crc32(body)) + body


def split(magic: bytes, data: memoryview, shape: type[H]) -> tuple[H, dict[str, memoryview]]:
    """The header and the sections of a file. Raises ValueError for one that isn't whole, or another kind."""
    if len(data) < _START.size:
        raise ValueError("a file that is too short")
    found, length, checksum = _START.unpack(data[: _START.size])
    body = data[_START.size :]
    if found != magic or zlib.crc32(body) != checksum:
        raise ValueError("a file that is damaged, or of another kind")
    try:
        header = msgspec.json.decode(body[:length], type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"a file with a damaged header: {error}") from error
    sections: dict[str, memoryview] = {}
    for name, size in header.sections.items():
        if not 0 <= size <= len(body) - length:
            raise ValueError("a file that is shorter than it says")
        sections[name] = body[length : length + size]
        length += size + -size % _ALIGNMENT
    return header, sections


def _padded(data: bytes) -> bytes:
    return data + b" " * (-len(data) % _ALIGNMENT)
