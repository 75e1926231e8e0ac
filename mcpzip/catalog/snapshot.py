"""The catalog on disk between runs.

The rules:

1. Nothing in the file can stop us: whatever can't be used is an empty catalog, or one tool less, and a
   warning that says so in one sentence.
2. What servers offer stands in it byte for byte as they sent it.
3. It says which config it belongs to; another's is not used. One of a later version is kept aside, not
   overwritten.
4. What is written can be read again: a server that takes more than its share is kept as one never listed, and
   costs no other its place.

    {"format":"mcpzip-snapshot","version":1,"config":"/home/a/…/config.json","servers":{"slack":{"tools":[…],…}}}

Of a server only ``tools`` must be there; what else is missing, as in the files of earlier versions, is empty.

``format`` and ``version`` come first in every version, so that any of them can tell what it holds. The
original's snapshot, an array of tools, is read too.
"""

import os
import re

import msgspec

from mcpzip.catalog.catalog import Catalog, ServerRecord
from mcpzip.catalog.list_checks import Problems, checked, checked_object
from mcpzip.catalog.parts import Parts
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.names import server_name_problem
from mcpzip.model.offers import PROMPT, RESOURCE, TEMPLATE
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import first_bytes, read_state, write_state

FORMAT = Format("mcpzip-snapshot", 1, "a snapshot")
Loaded = tuple[Catalog, tuple[str, ...]]
"""A catalog, and warnings: sentences that name the file and say what becomes of it."""


_ABSENT = msgspec.Raw()


class _Server(msgspec.Struct, omit_defaults=True):
    tools: list[msgspec.Raw]
    fetched_at: float | None = None
    error: str | None = None
    stale_since: float | None = None
    protocol: str | None = None
    fingerprint: str = ""
    title: str = ""
    instructions: str = ""
    warnings: list[str] = []
    prompts: list[msgspec.Raw] = []
    resources: list[msgspec.Raw] = []
    templates: list[msgspec.Raw] = []
    capabilities: msgspec.Raw = _ABSENT
    info: msgspec.Raw = _ABSENT
    ttl: float | None = None


class _Snapshot(Head):
    config: str
    servers: dict[str, _Server]


class _Written(Head):
    """A `_Snapshot` whose servers are JSON text already."""

    config: str
    servers: dict[str, msgspec.Raw]


class _OriginalTool(msgspec.Struct):
    """An element of the original's snapshot. Its ``compact_params`` are of no use here."""

    server_name: str
    original_name: str
    description: str | None = None
    input_schema: msgspec.Raw = msgspec.Raw(b"{}")


class _Tool(msgspec.Struct, omit_defaults=True):
    name: str
    input_schema: msgspec.Raw = msgspec.field(name="inputSchema")
    description: str | None = None


def load(path: str, config_path: str) -> Loaded:
    """The catalog kept at ``path`` for the config at ``config_path``. Nothing that is there makes it raise.

    A file that doesn't exist is an empty catalog without a warning.
    """
    try:
        data = read_state(path, limits.SNAPSHOT)
    except FileNotFoundError:
        return Catalog(), ()
    except OSError as error:
        return _unusable(path, f"can't be read ({error.strerror or error})")
    try:
        return _original(path, data) if data.lstrip()[:1] == b"[" else _ours(path, data, config_path)
    except UnusableError as error:
        return _unusable(path, str(error))


def save(path: str, config_path: str, catalog: Catalog) -> tuple[str, ...]:
    """Keep ``catalog`` at ``path``, for its owner only. Returns warnings; not being able to write is one, and
    a server of which nothing is kept is another.
    """
    warnings: list[str] = []
    servers = _within_limits(path, catalog, len(_storable(config_path).encode()), warnings)
    snapshot = _Written(FORMAT.name, FORMAT.version, _storable(config_path), servers)
    try:
        if _is_newer(path):
            os.replace(path, f"{path}.bak")
            warnings.append(f"{path} was of a later version of mcpzip; it is kept as {path}.bak.")
        write_state(path, msgspec.json.encode(snapshot), limits.SNAPSHOT)
    except OSError as error:
        warnings.append(
            f"{path} can't be written ({error.strerror or error}); make room or set its rights, "
            "or every start begins without tools."
        )
    return tuple(warnings)


_ROOM = 1_024
"""Bytes of the file that are no server's, but for the config's path: more than enough."""


def _within_limits(path: str, catalog: Catalog, around: int, warnings: list[str]) -> dict[str, msgspec.Raw]:
    """The servers as JSON texts. Of one over its share, and of the largest where all together are over the
    file's, there is only why. around: bytes of the config's path.
    """
    texts: dict[str, msgspec.Raw] = {}
    sizes: dict[str, int] = {}
    for name, record in catalog.servers.items():
        text = msgspec.json.encode(_kept(record))
        sizes[name] = len(text)
        if len(text) > limits.SNAPSHOT_SERVER:
            text = _without_lists(path, record, len(text), warnings)
        texts[name] = msgspec.Raw(text)
    # A path may grow sixfold when it is escaped; a server's name can't.
    total = _ROOM + 6 * around + sum(len(name) + len(text) + 4 for name, text in texts.items())
    for name in sorted(texts, key=lambda name: (-len(texts[name]), name)):
        if total <= limits.SNAPSHOT:
            break
        less = msgspec.Raw(_without_lists(path, catalog.servers[name], sizes[name], warnings))
        total -= len(texts[name]) - len(less)
        texts[name] = less
    return texts


def _without_lists(path: str, record: ServerRecord, size: int, warnings: list[str]) -> bytes:
    """``record`` as one never listed, as JSON text, and in ``warnings`` why."""
    why = f"what it offers takes {size:,} bytes, which is too much to be kept between runs"
    warnings.append(
        f"{path}: nothing is kept of {record.name!r}: {why}. Every start begins "
        "without it, until it is listed."
    )
    return msgspec.json.encode(
        _Server([], error=why, protocol=record.protocol, fingerprint=record.fingerprint)
    )


def _ours(path: str, data: bytes, config_path: str) -> Loaded:
    snapshot = FORMAT.decode(data, _Snapshot)
    if os.path.normcase(snapshot.config) != os.path.normcase(_storable(config_path)):
        return _unusable(path, f"belongs to another config ({snapshot.config})")
    return _catalog(path, snapshot.servers)


def _original(path: str, data: bytes) -> Loaded:
    servers: dict[str, _Server] = {}
    for tool in FORMAT.decode_as(data, list[_OriginalTool]):
        raw = msgspec.json.encode(_Tool(tool.original_name, tool.input_schema, tool.description))
        servers.setdefault(tool.server_name, _Server([])).tools.append(msgspec.Raw(raw))
    return _catalog(path, servers)


def _catalog(path: str, servers: dict[str, _Server]) -> Loaded:
    warnings: list[str] = []
    records: dict[str, ServerRecord] = {}
    for name, server in servers.items():
        problem = server_name_problem(name)
        if problem:
            warnings.append(f"{path}: the server name {name!r} {problem}; its tools are left out.")
            continue
        amiss = Problems()
        prompts, resources, templates = (
            checked(kind, name, map(bytes, raws), amiss, kept=True)
            for kind, raws in (
                (PROMPT, server.prompts),
                (RESOURCE, server.resources),
                (TEMPLATE, server.templates),
            )
        )
        capabilities, info = (
            checked_object(what, name, bytes(raw), amiss, kept=True)
            for what, raw in (("capabilities", server.capabilities), ("serverInfo", server.info))
        )
        records[name] = ServerRecord(
            name=name,
            entries=_entries(name, server.tools, amiss),
            fetched_at=server.fetched_at,
            error=server.error,
            stale_since=server.stale_since,
            protocol=server.protocol,
            fingerprint=server.fingerprint,
            title=server.title,
            instructions=server.instructions,
            warnings=tuple(server.warnings),
            prompts=prompts,
            resources=resources,
            templates=templates,
            capabilities=capabilities or b"{}",
            info=info,
            ttl=server.ttl,
        )
        warnings.extend(f"{path}: {each}" for each in amiss.sentences())
    return Catalog(records), tuple(warnings)


def _entries(server: str, tools: list[msgspec.Raw], amiss: Problems) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    for raw in tools:
        try:
            entry = Entry.parse(server, bytes(raw))
        except (InvalidToolError, UnicodeDecodeError) as error:
            amiss.append(f"{error}; it is left out until the next refresh.")
        else:
            entries.setdefault(entry.tool, entry)
    return Parts(entries[tool] for tool in sorted(entries))


def _kept(record: ServerRecord) -> _Server:
    return _Server(
        tools=[msgspec.Raw(entry.raw) for entry in record.entries],
        fetched_at=record.fetched_at,
        error=None if record.error is None else _storable(record.error),
        stale_since=record.stale_since,
        protocol=record.protocol,
        fingerprint=record.fingerprint,
        title=_storable(record.title),
        instructions=_storable(record.instructions),
        warnings=[_storable(warning) for warning in record.warnings],
        prompts=[msgspec.Raw(raw) for raw in record.prompts],
        resources=[msgspec.Raw(raw) for raw in record.resources],
        templates=[msgspec.Raw(raw) for raw in record.templates],
        capabilities=_ABSENT if record.capabilities == b"{}" else msgspec.Raw(record.capabilities),
        info=msgspec.Raw(record.info) if record.info else _ABSENT,
        ttl=record.ttl,
    )


def _storable(text: str) -> str:
    """``text`` as UTF-8 can hold it: a path, and an error that names one, may have bytes that aren't."""
    return text.encode("utf-8", "backslashreplace").decode()


_VERSION = re.compile(rb'\s*\{\s*"format"\s*:\s*"mcpzip-snapshot"\s*,\s*"version"\s*:\s*(\d{1,9})')


def _is_newer(path: str) -> bool:
    found = _VERSION.match(first_bytes(path, 200))
    return found is not None and int(found[1]) > FORMAT.version


def _unusable(path: str, why: str) -> Loaded:
    return Catalog(), (f"{path} {why}; it is rebuilt on the next refresh.",)
