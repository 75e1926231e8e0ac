"""The catalog on disk between runs.

The rules:

1. No content of the file is an error: an unusable file is an empty catalog, an unusable tool is left out,
   each with a warning of one sentence.
2. Tools, prompts and resources are stored as the servers sent them, byte for byte.
3. The file names the config that it belongs to, and isn't used with another. A file that a newer version
   wrote is renamed, not overwritten.
4. The file stays within its limits, so it can be read again: a server that is too large is stored without its
   lists, so that the others have room.

    {"format":"mcpzip-snapshot","version":1,"config":"/home/a/…/config.json","servers":{"slack":{"tools":[…],…}}}

Only ``tools`` is required of a server; other missing members, as in files of earlier versions, are empty.

``format`` and ``version`` come first in every version, so that each version recognizes the files of others.
The snapshot of the original mcpzip, an array of tools, can be read too.
"""

import os
import re
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from mcpzip.catalog import tool_table
from mcpzip.catalog.catalog import RECONFIGURED, Catalog, ServerRecord
from mcpzip.catalog.list_checks import Problems, checked_object, checked_offers
from mcpzip.catalog.parts import Parts
from mcpzip.config.paths import snapshot_path
from mcpzip.config.schema import Config
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.names import server_name_problem
from mcpzip.model.offers import PROMPT, RESOURCE, TEMPLATE
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.mapped_files import StateFile, map_state
from mcpzip.system.state_files import first_bytes, write_state

FORMAT = Format("mcpzip-snapshot", 1, "a snapshot")
Loaded = tuple[Catalog, tuple[str, ...]]
"""A catalog, and warnings: sentences that name the file and what is done about it."""

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
    """A `_Snapshot` with the servers as JSON texts, for writing."""

    config: str
    servers: dict[str, msgspec.Raw]


class _OriginalTool(msgspec.Struct):
    """An element of the original mcpzip's snapshot, without its ``compact_params``, which aren't used."""

    server_name: str
    original_name: str
    description: str | None = None
    input_schema: msgspec.Raw = msgspec.Raw(b"{}")


class _Tool(msgspec.Struct, omit_defaults=True):
    name: str
    input_schema: msgspec.Raw = msgspec.field(name="inputSchema")
    description: str | None = None


def load(path: str, config_path: str) -> Loaded:
    """The catalog stored at ``path`` for the config at ``config_path``. Never raises; if there is no file,
    the catalog is empty, without a warning.
    """
    try:
        file = StateFile(path, limits.SNAPSHOT)
        found = _by_table(path, file, config_path)
        data = b"" if found else file.whole()
    except FileNotFoundError:
        return Catalog(), ()
    except OSError as error:
        return _unusable(path, f"can't be read ({error.strerror or error})")
    try:
        return found or (
            _original(path, data) if data.lstrip()[:1] == b"[" else _ours(path, data, config_path)
        )
    except UnusableError as error:
        return _unusable(path, str(error))


def load_for(config: Config) -> Loaded:
    """The catalog stored for ``config``. With a project that was never used before, it begins with what is
    stored for the config alone. Never raises.
    """
    path = snapshot_path(config.state_path)
    if not config.project or os.path.lexists(path):
        return load(path, config.state_path)
    catalog, warnings = load(snapshot_path(config.path), config.path)
    known = {name: one for name, one in catalog.servers.items() if name not in config.project_servers}
    return Catalog(known), warnings


def save(path: str, config_path: str, catalog: Catalog) -> tuple[str, ...]:
    """Writes ``catalog`` to ``path``, readable by its owner only. Returns warnings: for a failed write, and
    for each server stored without its lists.
    """
    warnings: list[str] = []
    config = _storable(config_path)
    servers = _within_limits(path, catalog, len(config.encode()), warnings)
    texts = {name: msgspec.Raw(server.text) for name, server in servers.items()}
    data = msgspec.json.encode(_Written(FORMAT.name, FORMAT.version, config, texts))
    try:
        if _is_newer(path):
            os.replace(path, f"{path}.bak")
            warnings.append(f"{path} was written by a newer version of mcpzip; it is kept as {path}.bak.")
        write_state(path, data, limits.SNAPSHOT)
        _write_table(path, data, config, servers)
    except OSError as error:
        warnings.append(
            f"{path} can't be written ({error.strerror or error}); make room or set its rights, "
            "or every start begins without tools."
        )
    return tuple(warnings)


_ROOM = 1_024
"""Bytes of the file around the servers, without the config's path: more than enough."""


class _Text(msgspec.Struct, frozen=True):
    """A server in the file: its JSON text, which has the tools ``entries``, and the record without these."""

    text: bytes
    entries: tuple[Entry, ...]
    record: _Server

    @classmethod
    def of(cls, record: _Server, entries: tuple[Entry, ...] = ()) -> "_Text":
        tools = [msgspec.Raw(entry.read()) for entry in entries]
        return cls(msgspec.json.encode(replace(record, tools=tools)), entries, record)


def _within_limits(path: str, catalog: Catalog, path_bytes: int, warnings: list[str]) -> dict[str, _Text]:
    """The servers as they are written. Servers over their limit, and the largest ones until the rest is
    within the limit of the file, are without their lists. path_bytes: bytes of the config's path.
    """
    texts: dict[str, _Text] = {}
    sizes: dict[str, int] = {}
    for name, record in catalog.servers.items():
        texts[name] = _Text.of(_stored(record), record.entries)
        sizes[name] = len(texts[name].text)
        if sizes[name] > limits.SNAPSHOT_SERVER:
            texts[name] = _without_lists(path, record, sizes[name], warnings)
    # Escaping can make a path six times as long; a server's name has no characters to escape.
    total = _ROOM + 6 * path_bytes + sum(len(name) + len(each.text) + 4 for name, each in texts.items())
    for name in sorted(texts, key=lambda name: (-len(texts[name].text), name)):
        if total <= limits.SNAPSHOT:
            break
        smaller = _without_lists(path, catalog.servers[name], sizes[name], warnings)
        total -= len(texts[name].text) - len(smaller.text)
        texts[name] = smaller
    return texts


def _without_lists(path: str, record: ServerRecord, size: int, warnings: list[str]) -> _Text:
    """``record`` as if it had never been listed. Adds a warning."""
    why = f"its lists take {size:,} bytes, too many to be stored between runs"
    warnings.append(
        f"{path}: the lists of {record.name!r} are not stored: {why}. After each start its tools are missing "
        "until it is listed."
    )
    return _Text.of(_Server([], error=why, protocol=record.protocol, fingerprint=record.fingerprint))


def _write_table(path: str, data: bytes, config: str, servers: Mapping[str, _Text]) -> None:
    """Writes the table of the snapshot ``data``. Without it the next start only takes longer."""
    written: dict[str, tool_table.WrittenServer] = {}
    end = len(data) - len(b"}}") - sum(len(name) + len(each.text) + 4 for name, each in servers.items()) + 1
    for name, each in servers.items():
        start = end + len(name) + len('"":')
        end = start + len(each.text) + 1  # a comma
        if data[start : end - 1] != each.text:
            return  # a server's name was escaped, which none needs
        record = msgspec.json.encode(each.record)
        written[name] = tool_table.WrittenServer(record, each.entries, start + len(b'{"tools":['))
    try:
        write_state(tool_table.path_of(path), tool_table.to_bytes(data, config, written))
    except (OSError, ValueError):
        pass


def _by_table(path: str, file: StateFile, config_path: str) -> Loaded | None:
    """What is in the snapshot ``file``, by its table; None where there is none for it."""
    try:
        table = map_state(tool_table.path_of(path), limits.SNAPSHOT)
        found = tool_table.from_bytes(table, file, _storable(config_path))
        records = {name: msgspec.json.decode(record, type=_Server) for name, (record, _) in found.items()}
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return _catalog(path, records, {name: entries for name, (_, entries) in found.items()})


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


def _catalog(
    path: str, servers: Mapping[str, _Server], tools: Mapping[str, Parts[Entry]] | None = None
) -> Loaded:
    """The catalog of ``servers``. tools: of each; None: those of the servers are to be checked."""
    warnings: list[str] = []
    records: dict[str, ServerRecord] = {}
    for name, server in servers.items():
        problem = server_name_problem(name)
        if problem:
            warnings.append(f"{path}: the server name {name!r} {problem}; its tools are left out.")
            continue
        problems = Problems()
        prompts, resources, templates = (
            checked_offers(kind, name, map(bytes, raws), problems, stored=True)
            for kind, raws in (
                (PROMPT, server.prompts),
                (RESOURCE, server.resources),
                (TEMPLATE, server.templates),
            )
        )
        capabilities, info = (
            checked_object(what, name, bytes(raw), problems, stored=True)
            for what, raw in (("capabilities", server.capabilities), ("serverInfo", server.info))
        )
        records[name] = ServerRecord(
            name=name,
            entries=_entries(name, server.tools, problems) if tools is None else tools[name],
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
            earlier=server.error not in (None, RECONFIGURED),
        )
        warnings.extend(f"{path}: {each}" for each in problems.sentences())
    return Catalog(records), tuple(warnings)


def _entries(server: str, tools: list[msgspec.Raw], problems: Problems) -> tuple[Entry, ...]:
    entries: dict[str, Entry] = {}
    for raw in tools:
        try:
            entry = Entry.parse(server, bytes(raw))
        except (InvalidToolError, UnicodeDecodeError) as error:
            problems.append(f"{error}; it is left out until the next refresh.")
        else:
            entries.setdefault(entry.tool, entry)
    return Parts(entries[tool] for tool in sorted(entries))


def _stored(record: ServerRecord) -> _Server:
    """``record`` as it is stored, without its tools."""
    return _Server(
        tools=[],
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
    """``text`` with surrogates escaped, which UTF-8 can't encode: a path may have some, and so may an
    error."""
    return text.encode("utf-8", "backslashreplace").decode()


_VERSION = re.compile(rb'\s*\{\s*"format"\s*:\s*"mcpzip-snapshot"\s*,\s*"version"\s*:\s*(\d{1,9})')


def _is_newer(path: str) -> bool:
    found = _VERSION.match(first_bytes(path, 200))
    return found is not None and int(found[1]) > FORMAT.version


def _unusable(path: str, why: str) -> Loaded:
    return Catalog(), (f"{path} {why}; it is rebuilt on the next refresh.",)
