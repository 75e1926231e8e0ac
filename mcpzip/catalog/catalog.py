"""Everything every upstream offers, as last seen: tools, prompts, resources, resource templates.

The rules:

1. A catalog never changes; `merge` makes a new one. Merging is idempotent and order-free, and never touches a
   server it was told nothing of.
2. A server that answered has exactly what it listed, even nothing. One that failed keeps its last, marked
   stale with why and since when.
3. A tool is found by its whole name, never by splitting it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from mcpzip.catalog.list_checks import (
    TOO_LARGE,
    Problems,
    checked,
    checked_object,
    cut,
    deeper,
    too_large,
)
from mcpzip.catalog.name_index import NameIndex
from mcpzip.catalog.parts import Parts, digest_of, digest_of_tools, together
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.offers import PROMPT, RESOURCE, TEMPLATE
from mcpzip.model.quoting import shortened
from mcpzip.wire import split_object
from mcpzip.wire.json_iter import WHITESPACE


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """What is known of one upstream.

    entries: its tools, by name. fetched_at: when it last listed them (Unix seconds), None when never.
    error, stale_since: why it can't be listed, and when that began; None both when its tools are up to date.
    protocol: the protocol version it last spoke. fingerprint: of the config it was listed under, "" if
    unknown.
    title, instructions: its own, "" when it gave none. warnings: what was wrong with its list, as sentences.
    prompts, resources, templates: each as the JSON text it was received in, by name, URI and template.
    capabilities: what it said it can do, the JSON text of an object. info: its ``serverInfo`` likewise, b""
    when it gave none. ttl: seconds it said that its list is good for, None when it didn't.
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

    @property
    def stale(self) -> bool:
        """Whether its tools may have changed since they were listed."""
        return self.error is not None

    def declares(self, capability: str) -> bool:
        """Whether it said that it has ``capability`` (``prompts``, ``resources``, ``completions``, …)."""
        return split_object(self.capabilities).get(capability, b"null") != b"null"


@dataclass(frozen=True)
class Listed:
    """A server answered.

    tools: the elements of its whole `tools/list`, every page, as JSON text; prompts, resources, templates:
    likewise. at: Unix seconds. over: which of its lists could not be had for their size, as sentences. The
    rest is as in `ServerRecord`.
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

    @cached_property
    def record(self) -> ServerRecord:
        """What there is to keep of it: every tool read, and checked. That takes as long as the server likes,
        so it is done in a thread before `merge`, which then takes none.
        """
        return _listed(self)


@dataclass(frozen=True, slots=True)
class Failed:
    """A server could not be listed. ``reason`` is a sentence without its full stop; ``at`` Unix seconds.

    lasting: whether asking again soon would come to the same.
    """

    server: str
    reason: str
    at: float
    lasting: bool = False


Update = Listed | Failed


class Catalog:
    """What every server offers. Immutable; equal when their records are. Its length is that of `entries`."""

    def __init__(self, servers: Mapping[str, ServerRecord] | None = None) -> None:
        self.servers: Mapping[str, ServerRecord] = MappingProxyType(dict(sorted((servers or {}).items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Catalog) and self.servers == other.servers

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Catalog({len(self.servers)} servers, {len(self)} tools, version {self.version})"

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Every tool, by name."""
        return tuple(self._by_name.values())

    @cached_property
    def version(self) -> str:
        """A hash of every tool's name and definition, and of nothing else: the same tools have the same
        version, in every run.
        """
        return together(
            (name, digest_of_tools(record.entries)) for name, record in self.servers.items() if record.entries
        )

    @cached_property
    def prompts_version(self) -> str:
        """The like of `version` for prompts: it changes when what `prompts/list` says does."""
        return together(
            (name, digest_of(record.prompts)) for name, record in self.servers.items() if record.prompts
        )

    @cached_property
    def resources_version(self) -> str:
        """The like of `version` for resources and resource templates."""
        return together(
            (f"{name}/{kind}", digest_of(raws))
            for name, record in self.servers.items()
            for kind, raws in (("resource", record.resources), ("template", record.templates))
            if raws
        )

    def get(self, name: str) -> Entry | None:
        """The tool a client calls ``name``."""
        return self._by_name.get(name)

    def alike(self, name: str, servers: Collection[str] | None = None) -> tuple[str, ...]:
        """The names that differ from ``name`` in case and separators only, or in lacking the server.

        servers: only theirs count, and those that lack the server only where there is no other.
        """
        return self._names.alike(name, servers)

    def nearest(self, name: str, n: int = 3) -> tuple[str, ...]:
        """The ``n`` names most like ``name``, best first; fewer, or none, when few come near."""
        return self._names.nearest(name, n)

    @cached_property
    def _by_name(self) -> dict[str, Entry]:
        every = [(entry.name, entry) for record in self.servers.values() for entry in record.entries]
        return dict(sorted(every, key=lambda pair: pair[0]))

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex((entry.server, entry.tool) for entry in self.entries)


def merge(catalog: Catalog, updates: Iterable[Update]) -> Catalog:
    """``catalog`` after ``updates``. Several for one server are taken in order of time."""
    servers = dict(catalog.servers)
    for update in sorted(updates, key=_order):
        before = servers.get(update.server) or ServerRecord(update.server)
        servers[update.server] = update.record if isinstance(update, Listed) else _failed(before, update)
    return Catalog(servers)


def retain(catalog: Catalog, servers: Mapping[str, str]) -> Catalog:
    """``catalog`` with the configured servers only: ``servers`` maps a name to its fingerprint.

    One whose fingerprint changed keeps its tools, marked stale, and loses its remembered protocol.
    """
    kept = {}
    for name, record in catalog.servers.items():
        if name not in servers:
            continue
        changed = record.fingerprint not in ("", servers[name])
        kept[name] = _reconfigured(record, servers[name]) if changed else record
    return Catalog(kept)


def _order(update: Update) -> tuple[float, bool, tuple[tuple[bytes, ...], ...]]:
    # Of two things said of one moment the failure is believed; any other tie is settled by what was said.
    if isinstance(update, Failed):
        return update.at, True, ((_bytes(update.reason),),)
    texts = (update.fingerprint, update.protocol or "", update.title, update.instructions, str(update.ttl))
    said = (*map(_bytes, texts), update.capabilities, update.info)
    return update.at, False, (said, update.tools, update.prompts, update.resources, update.templates)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _listed(update: Listed) -> ServerRecord:
    record = _checked(update)
    for raws in (record.prompts, record.resources, record.templates):
        digest_of(raws)  # which is remembered: what is compared later has it
    digest_of_tools(record.entries)
    return record


def _checked(update: Listed) -> ServerRecord:
    entries: dict[str, Entry] = {}
    warnings = Problems()
    for sentence in update.over:
        warnings.append(sentence)
    for raw in update.tools:
        try:
            entry = _entry(update.server, raw.strip(WHITESPACE))
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
        checked(kind, update.server, raws, warnings)
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


def _entry(server: str, raw: bytes) -> Entry:
    if too_large(raw):
        raise InvalidToolError(f"a tool of {server!r} {TOO_LARGE}")
    if nested := deeper(raw):
        Entry.parse(server, b'{"name":"_","inputSchema":%b}' % nested)
    return Entry.parse(server, raw)


def _failed(before: ServerRecord, update: Failed) -> ServerRecord:
    since = before.stale_since if before.stale and before.stale_since is not None else update.at
    return replace(before, error=cut(update.reason, limits.REASON), stale_since=since)


def _reconfigured(record: ServerRecord, fingerprint: str) -> ServerRecord:
    return replace(
        record,
        error="its configuration changed after its tools were listed",
        stale_since=record.stale_since if record.stale else record.fetched_at,
        protocol=None,
        fingerprint=fingerprint,
    )
