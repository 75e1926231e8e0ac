"""The tools, prompts, resources and resource templates of all upstreams, as last listed.

The rules:

1. A catalog is immutable; `merge` makes a new one. Merging is idempotent, the order of the updates doesn't
   matter, and servers without an update stay as they are.
2. A server that was listed has exactly what it listed, even if that is nothing. A server that can't be listed
   has what it listed last, marked stale, with the reason and the time.
3. A tool is looked up by its whole name; the name is never split.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from types import MappingProxyType

import msgspec
from msgspec.structs import astuple, replace

from mcpzip.catalog.list_checks import (
    TOO_LARGE,
    Problems,
    checked_object,
    checked_offers,
    cut,
    nested_more,
)
from mcpzip.catalog.name_index import NameIndex
from mcpzip.catalog.parts import Parts, combined_digest, digest_of, digest_of_tools
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.offers import PROMPT, RESOURCE, TEMPLATE
from mcpzip.model.quoting import shortened
from mcpzip.wire import split_object
from mcpzip.wire.json_iter import WHITESPACE

RECONFIGURED = "its configuration changed after its tools were listed"
"""The error of a server whose tools were listed with other settings. It is about the list, not a process."""


class ServerRecord(msgspec.Struct, frozen=True, eq=False):
    """What the catalog has of one upstream.

    entries: the tools, sorted by name. fetched_at: when they were last listed (Unix seconds), or None.
    error, stale_since: why listing fails, and since when (Unix seconds); both None if the last listing
    worked. earlier: whether another process recorded the error, which may have a reason that this one doesn't
    have, such as its environment. protocol: the protocol version last used. fingerprint: of the server's
    config at the last listing; "" if unknown. title, instructions: as the server sent them; "" if missing.
    warnings: sentences about parts of its lists that can't be used. prompts, resources, templates: JSON texts
    as received, sorted by name, URI and URI template. capabilities: JSON text of an object. info:
    ``serverInfo`` as JSON text; b"" if missing. ttl: seconds for which the server said its lists are valid;
    None if it didn't.
    """

    name: str
    entries: tuple[Entry, ...] = ()
    fetched_at: float | None = None
    error: str | None = None
    stale_since: float | None = None
    protocol: str | None = None
    fingerprint: str = ""
    title: str = ""
    instructions: str = ""
    warnings: tuple[str, ...] = ()
    prompts: tuple[bytes, ...] = ()
    resources: tuple[bytes, ...] = ()
    templates: tuple[bytes, ...] = ()
    capabilities: bytes = b"{}"
    info: bytes = b""
    ttl: float | None = None
    earlier: bool = False

    def __eq__(self, other: object) -> bool:
        """Whether the two say the same of the server. Which process recorded an error doesn't count."""
        if not isinstance(other, ServerRecord):
            return NotImplemented
        return self is other or astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(astuple(self)[:-1])

    @property
    def stale(self) -> bool:
        """Whether the last listing failed, so that the tools may have changed since."""
        return self.error is not None

    @property
    def failing(self) -> bool:
        """Whether the last listing failed in this process."""
        return self.error is not None and not self.earlier

    def declares(self, capability: str) -> bool:
        """Whether the server declares ``capability`` (``prompts``, ``resources``, ``completions``, …)."""
        return split_object(self.capabilities).get(capability, b"null") != b"null"


class Listed(msgspec.Struct, frozen=True, dict=True):
    """The update for a server that was listed.

    tools, prompts, resources, templates: the items of the lists, of all pages, as JSON texts. at: Unix
    seconds. over: sentences about lists that are missing because they are too large. unlisted: the kinds of
    items (`model.surface.Kind`) that were not listed now, but earlier or never. The rest is as in
    `ServerRecord`.
    """

    server: str
    tools: tuple[bytes, ...]
    at: float
    protocol: str | None = None
    fingerprint: str = ""
    title: str = ""
    instructions: str = ""
    prompts: tuple[bytes, ...] = ()
    resources: tuple[bytes, ...] = ()
    templates: tuple[bytes, ...] = ()
    capabilities: bytes = b"{}"
    info: bytes = b""
    ttl: float | None = None
    over: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    @cached_property
    def record(self) -> ServerRecord:
        """The checked record. The server decides how long the checks take, so this property is first read in
        a thread, before `merge`, for which it is then cached.
        """
        record = _checked(self)
        for raws in (record.prompts, record.resources, record.templates):
            digest_of(raws)  # cached here, in the thread, for later comparisons
        digest_of_tools(record.entries)
        return record

    def with_record(self, record: ServerRecord) -> "Listed":
        """The same update, of which only ``record`` is taken over."""
        update = replace(self)
        update.__dict__["record"] = record  # in place of what the property would compute
        return update


class Failed(msgspec.Struct, frozen=True):
    """The update for a server that could not be listed.

    reason: a sentence without its full stop. at: Unix seconds. lasting: whether an early retry would fail
    too.
    """

    server: str
    reason: str
    at: float
    lasting: bool = False


Update = Listed | Failed


class Catalog:
    """The records of all servers. Immutable. Two are equal if their records are; ``len`` counts the tools."""

    def __init__(self, servers: Mapping[str, ServerRecord] | None = None) -> None:
        self.servers: Mapping[str, ServerRecord] = MappingProxyType(dict(sorted((servers or {}).items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalog) and self.servers == other.servers

    def __len__(self) -> int:
        return sum(len(record.entries) for record in self.servers.values())

    def __repr__(self) -> str:
        return f"Catalog({len(self.servers)} servers, {len(self)} tools, version {self.version})"

    def __iter__(self) -> Iterator[Entry]:
        """Every tool, server by server. Unlike `entries` it keeps nothing."""
        return chain.from_iterable(record.entries for record in self.servers.values())

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool, by name."""
        return tuple(self._by_name.values())

    @cached_property
    def version(self) -> str:
        """A hash of the names and definitions of all tools: the same in every run for the same tools."""
        return combined_digest(
            (name, digest_of_tools(record.entries)) for name, record in self.servers.items() if record.entries
        )

    @cached_property
    def prompts_version(self) -> str:
        """A hash of all prompts, as `version` is of all tools."""
        return combined_digest(
            (name, digest_of(record.prompts)) for name, record in self.servers.items() if record.prompts
        )

    @cached_property
    def resources_version(self) -> str:
        """A hash of all resources and resource templates, as `version` is of all tools."""
        return combined_digest(
            (f"{name}/{kind}", digest_of(raws))
            for name, record in self.servers.items()
            for kind, raws in (("resource", record.resources), ("template", record.templates))
            if raws
        )

    def get(self, name: str) -> Entry | None:
        """The tool with this name, server included, or None."""
        return self._by_name.get(name)

    def alike(self, name: str, servers: Collection[str] | None = None) -> tuple[str, ...]:
        """See `NameIndex.alike`."""
        return self._names.alike(name, servers)

    def nearest(self, name: str, n: int = 3) -> tuple[str, ...]:
        """See `NameIndex.nearest`."""
        return self._names.nearest(name, n)

    @cached_property
    def _by_name(self) -> dict[str, Entry]:
        by_name = {f"{entry.server}__{entry.tool}": entry for entry in self}
        return {name: by_name[name] for name in sorted(by_name)}

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex((entry.server, entry.tool) for entry in self.entries)


def merge(catalog: Catalog, updates: Iterable[Update]) -> Catalog:
    """``catalog`` with ``updates`` applied, in order of their time."""
    servers = dict(catalog.servers)
    for update in sorted(updates, key=_sort_key):
        before = servers.get(update.server) or ServerRecord(update.server)
        if isinstance(update, Listed):
            servers[update.server] = _with_known_tools(update.record, before)
        else:
            servers[update.server] = _failed(before, update)
    return Catalog(servers)


def retain(catalog: Catalog, servers: Mapping[str, str]) -> Catalog:
    """``catalog`` with the configured servers only: ``servers`` maps their names to their fingerprints.

    The tools of a server whose fingerprint changed are marked stale, and its protocol version is forgotten.
    """
    records = {}
    for name, record in catalog.servers.items():
        if name not in servers:
            continue
        changed = record.fingerprint not in ("", servers[name])
        records[name] = _reconfigured(record, servers[name]) if changed else record
    return Catalog(records)


def _sort_key(update: Update) -> tuple[float, bool, tuple[tuple[bytes, ...], ...]]:
    # Of two updates with the same time a failure is applied last; otherwise their contents decide, so that
    # the order in which they were passed doesn't.
    if isinstance(update, Failed):
        return update.at, True, ((_bytes(update.reason),),)
    texts = (update.fingerprint, update.protocol or "", update.title, update.instructions, str(update.ttl))
    single = (*map(_bytes, texts), update.capabilities, update.info)
    return update.at, False, (single, update.tools, update.prompts, update.resources, update.templates)


def _with_known_tools(record: ServerRecord, before: ServerRecord) -> ServerRecord:
    """``record`` with the tools of ``before`` where they are equal: the index has those, and two copies would
    take twice the memory.
    """
    if not before.entries or not record.entries:
        return record
    if digest_of_tools(record.entries) == digest_of_tools(before.entries):
        return replace(record, entries=before.entries)
    known = {entry.tool: entry for entry in before.entries}
    entries = Parts(
        same if (same := known.get(entry.tool)) is not None and same == entry else entry
        for entry in record.entries
    )
    entries.digest = digest_of_tools(record.entries)
    return replace(record, entries=entries)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _checked(update: Listed) -> ServerRecord:
    entries: dict[str, Entry] = {}
    warnings = Problems()
    for sentence in update.over:
        warnings.append(sentence)
    for raw in update.tools:
        try:
            entry = _parsed(update.server, raw.strip(WHITESPACE))
        except (InvalidToolError, UnicodeDecodeError) as error:
            warnings.append(f"{error}; the tool is left out.")
            continue
        if entry.tool in entries:
            warnings.append(
                f"{update.server!r} lists {shortened(entry.tool)!r} more than once; the first is used."
            )
        else:
            entries[entry.tool] = entry
    prompts, resources, templates = (
        checked_offers(kind, update.server, raws, warnings)
        for kind, raws in (
            (PROMPT, update.prompts),
            (RESOURCE, update.resources),
            (TEMPLATE, update.templates),
        )
    )
    if len(update.instructions) > limits.INSTRUCTIONS:
        warnings.append(
            f"the instructions of {update.server!r} are longer than {limits.INSTRUCTIONS:,} characters; "
            "the rest is left out."
        )
    return ServerRecord(
        name=update.server,
        entries=Parts(entries[tool] for tool in sorted(entries)),
        fetched_at=update.at,
        protocol=update.protocol,
        fingerprint=update.fingerprint,
        title=cut(update.title, limits.NAME),
        instructions=cut(update.instructions, limits.INSTRUCTIONS),
        prompts=prompts,
        resources=resources,
        templates=templates,
        capabilities=checked_object("capabilities", update.server, update.capabilities, warnings) or b"{}",
        info=checked_object("serverInfo", update.server, update.info, warnings),
        ttl=update.ttl,
        warnings=warnings.sentences(),
    )


def _parsed(server: str, raw: bytes) -> Entry:
    if len(raw) > limits.ITEM:
        raise InvalidToolError(f"a tool of {server!r} {TOO_LARGE}")
    if nested := nested_more(raw):
        Entry.parse(server, b'{"name":"_","inputSchema":%b}' % nested)
    return Entry.parse(server, raw)


def _failed(before: ServerRecord, update: Failed) -> ServerRecord:
    since = before.stale_since if before.stale and before.stale_since is not None else update.at
    return replace(before, error=cut(update.reason, limits.REASON), stale_since=since, earlier=False)


def _reconfigured(record: ServerRecord, fingerprint: str) -> ServerRecord:
    return replace(
        record,
        error=RECONFIGURED,
        stale_since=record.stale_since if record.stale else record.fetched_at,
        protocol=None,
        fingerprint=fingerprint,
        earlier=False,
    )
