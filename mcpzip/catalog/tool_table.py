"""Where the tools are in a snapshot, and what is known of each, so that a start needn't decode them.

The rule: the snapshot is what counts. The table beside it is used for the snapshot with the same checksum
only, and by the version of mcpzip that wrote it; otherwise the snapshot is decoded. So nothing has to be
checked again that was checked when the snapshot was written.

The file is one of `model.sections`. Its sections have, of all tools of all servers: starts, ends: <I each,
of the tool's JSON text in the snapshot · hints: a byte each · digests: 16 bytes each.
"""

import os
import sys
import zlib
from array import array
from collections.abc import Mapping
from itertools import repeat

import msgspec

from mcpzip import __version__
from mcpzip.catalog.parts import Parts, digest_of_tools
from mcpzip.model import limits, sections
from mcpzip.model.entry import Entry, StoredTexts
from mcpzip.system.mapped_files import StateFile

MAGIC = b"MZT1"
VERSION = 1  # of the sections

_READ_ONLY, _IDEMPOTENT = 1, 2  # bits of a hint
_DIGEST = 16  # bytes


class Server(msgspec.Struct):
    """A server in the table.

    record: JSON text of what the snapshot has of it, without its tools. tools: their names. digest:
    `digest_of_tools`.
    """

    record: msgspec.Raw
    tools: list[str]
    digest: bytes


class _Header(sections.Header):
    made_by: str
    checksum: int  # CRC-32 of the snapshot
    config: str
    servers: dict[str, Server]


class WrittenServer(msgspec.Struct, frozen=True):
    """A server as it is written.

    start: of its first tool in the snapshot; the others follow, after a byte each. record: see `Server`.
    """

    record: bytes
    entries: tuple[Entry, ...]
    start: int


def path_of(snapshot_path: str) -> str:
    """The path of the table of the snapshot at ``snapshot_path``."""
    return f"{os.path.splitext(snapshot_path)[0]}.bin"


def to_bytes(snapshot: bytes, config: str, servers: Mapping[str, WrittenServer]) -> bytes:
    """The table of the file ``snapshot``. config: as in it. Raises ValueError if a name can't be stored."""
    starts, ends, hints, digests = array("I"), array("I"), bytearray(), bytearray()
    headers: dict[str, Server] = {}
    for name, server in servers.items():
        at = server.start
        for entry in server.entries:
            size = len(entry.read())
            starts.append(at)
            ends.append(at + size)
            at += size + 1
            hints.append(_READ_ONLY * entry.read_only + _IDEMPOTENT * entry.idempotent)
            digests += entry.digest
        tools = [entry.tool for entry in server.entries]
        headers[name] = Server(msgspec.Raw(server.record), tools, digest_of_tools(server.entries))
    header = _Header({}, _made_by(), zlib.crc32(snapshot), config, headers)
    columns = {
        "starts": starts.tobytes(),
        "ends": ends.tobytes(),
        "hints": bytes(hints),
        "digests": bytes(digests),
    }
    return sections.joined(MAGIC, header, columns)


def from_bytes(
    table: memoryview, snapshot: StateFile, config: str
) -> dict[str, tuple[msgspec.Raw, Parts[Entry]]]:
    """The record and the tools of each server of a ``snapshot``, from which the tools are read when needed.

    Raises OSError, and ValueError for a table of another snapshot, config or version, or a damaged one.
    """
    header, columns = sections.split(MAGIC, table, _Header)
    if header.made_by != _made_by() or header.config != config or header.checksum != snapshot.checksum():
        raise ValueError("a table of another snapshot")
    try:
        starts, ends = columns["starts"].cast("I"), columns["ends"].cast("I")
        hints, digests = bytes(columns["hints"]), bytes(columns["digests"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"a table without some of its sections: {error}") from error
    count = sum(len(server.tools) for server in header.servers.values())
    if not count == len(starts) == len(ends) == len(hints) == len(digests) // _DIGEST:
        raise ValueError("a table with more or fewer tools than it says")
    texts = StoredTexts(snapshot.read, starts, ends)
    keys = [digests[at : at + _DIGEST] for at in range(0, len(digests), _DIGEST)]
    read_only = [bool(hint & _READ_ONLY) for hint in hints]
    idempotent = [bool(hint & _IDEMPOTENT) for hint in hints]
    end = 0
    found: dict[str, tuple[msgspec.Raw, Parts[Entry]]] = {}
    for name, server in header.servers.items():
        start, end = end, end + len(server.tools)
        those = slice(start, end)
        rest = read_only[those], idempotent[those], keys[those], repeat(texts), range(start, end)
        entries = Parts(map(Entry, repeat(name), server.tools, *rest))
        entries.digest = server.digest
        found[name] = server.record, entries
    return found


def _made_by() -> str:
    """What the table depends on besides its snapshot: the limits by which the tools were checked, too."""
    return repr((__version__, VERSION, sys.byteorder, limits.NAME, limits.MEMBERS))
