"""The status of each server as it is shown (by `proxy_status`, `mcpzip servers` and searches): health, tools,
age of the lists, reason of a failure.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import asdict, replace

from mcpzip.catalog import Catalog, ServerRecord
from mcpzip.catalog.visibility import matcher
from mcpzip.config import ServerConfig
from mcpzip.config.paths import mcpzip_command
from mcpzip.model.durations import age
from mcpzip.model.errors import NEEDS_LOGIN
from mcpzip.model.limits import INDEXED_WORDS
from mcpzip.model.names import join
from mcpzip.model.quoting import one_line
from mcpzip.model.redaction import redact
from mcpzip.transport.health import FAILING, Health, State

if TYPE_CHECKING:
    from mcpzip.auth.status import Listing  # importing it takes 5 ms


class ServerStatus(msgspec.Struct, frozen=True):
    """One server. tools: how many are shown. listed_at: Unix seconds, or None. reason: what is wrong and what
    to do, or "". held: how many of its items are held back (``2 tools``), or "". prompts, resources: how many
    were listed, templates among the latter. unusable: how many of the first ``warnings`` are about its lists,
    and may quote them. suspect: how much is odd about its errors and questions
    (`proxy.heard`).
    """

    name: str
    transport: str
    state: State
    tools: int
    listed_at: float | None
    protocol: str | None
    reason: str
    warnings: tuple[str, ...]
    held: str = ""
    prompts: int = 0
    resources: int = 0
    unusable: int = 0
    suspect: int = 0

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return asdict(self)


def listing_of(known: ServerStatus) -> "Listing":
    """What came of asking the server for its tools last."""
    if "needs a login" in known.reason or known.state == "needs login":
        return "refused"
    return "done" if known.listed_at is not None and not known.reason else "never"


def statuses(
    servers: Mapping[str, ServerConfig],
    catalog: Catalog,
    health: Mapping[str, Health],
    name_only_counts: Mapping[str, int],
    held: Mapping[str, str] | None = None,
    *,
    earlier: bool = False,
) -> list[ServerStatus]:
    """Every configured server, by name. ``catalog`` is the visible one. name_only_counts: how many tools of a
    server are found by their names only. held: how many of its items are held back, as a phrase. earlier:
    whether the failures of other processes count.
    """
    return [
        _status(
            server, catalog, health[name], name_only_counts.get(name, 0), (held or {}).get(name, ""), earlier
        )
        for name, server in sorted(servers.items())
    ]


def statuses_of_view(
    servers: Mapping[str, ServerConfig], catalog: Catalog, health: Mapping[str, Health]
) -> list[ServerStatus]:
    """The same for people who may use a part only: without what may name the rest, and without what only
    who uses this machine can mend.
    """
    found = statuses(servers, catalog, health, {})
    return [replace(one, warnings=(), unusable=0) for one in found]


def _status(
    server: ServerConfig, catalog: Catalog, health: Health, name_only_counts: int, held: str, earlier: bool
) -> ServerStatus:
    record = catalog.servers.get(server.name)
    state, reason = _state_and_reason(record, health, earlier)
    return ServerStatus(
        name=server.name,
        transport=server.transport,
        state=state,
        tools=len(record.entries) if record else 0,
        listed_at=record.fetched_at if record else None,
        protocol=record.protocol if record else None,
        reason=reason,
        warnings=tuple(
            one_line(redact(warning))
            for warning in (
                *record.warnings,
                *_in_brief(name_only_counts),
                *_of_no_use(server, record, catalog),
            )
        )
        if record
        else (),
        held=held,
        unusable=len(record.warnings) if record else 0,
        prompts=len(record.prompts) if record else 0,
        resources=len(record.resources) + len(record.templates) if record else 0,
    )


def _state_and_reason(
    record: ServerRecord | None, health: Health, earlier: bool = False
) -> tuple[State, str]:
    """The state of a server, which failed if its last listing did; and what is wrong, or "".

    The failure of another process counts if no process has ever listed the server's tools, or if ``earlier``.
    """
    failed = record.error if record is not None else None
    if record is None or not failed or (record.earlier and record.fetched_at is not None and not earlier):
        return health.state, one_line(redact(health.reason))
    state = health.state
    if state not in ("disabled", "needs login"):
        state = "needs login" if failed.startswith(NEEDS_LOGIN) else "failing"
    return state, one_line(redact(f"last time: {failed}" if record.earlier and not earlier else failed))


def failures(catalog: Catalog, health: Mapping[str, Health]) -> dict[str, str]:
    """Why the servers of ``health`` that can't be used now can't be, by name."""
    states = {name: _state_and_reason(catalog.servers.get(name), one) for name, one in health.items()}
    return {name: reason for name, (state, reason) in states.items() if state in FAILING}


def _in_brief(tools: int) -> Iterator[str]:
    """A sentence about ``tools`` that are found by their names only, if there are any."""
    if tools:
        yield (
            f"search: of {tools:,} of its tools only the names are searched, because all together have more "
            f"than {INDEXED_WORDS:,} unusual words; hide those you don't need (tools.allow, tools.deny)."
        )


def _of_no_use(server: ServerConfig, record: ServerRecord, catalog: Catalog) -> Iterator[str]:
    """Sentences about pins that pin nothing."""
    if record.fetched_at is None:
        return
    for glob in server.pin:
        fits = matcher([glob])
        if not any(fits(entry.tool) for entry in record.entries):
            near = [name for name in catalog.nearest(join(server.name, glob)) if name.startswith(server.name)]
            hint = f"; the nearest is {near[0].removeprefix(join(server.name, ''))!r}" if near else ""
            yield f"pin: it shows no tool {glob!r}{hint}."


def as_text(found: list[ServerStatus], now: float, config: str, notes: Sequence[str] = ()) -> str:
    """One line a server, for a model. config: its path. notes: sentences about the file."""
    lines = [f"{len(found)} servers, {sum(one.tools for one in found)} tools"]
    lines.extend(f"config: {one_line(redact(note))}" for note in notes)
    for one in found:
        listed = f"listed {age(now - one.listed_at)} ago" if one.listed_at else "never listed"
        line = f"{one.name}: {one.state}, {one.tools} tools, {_beside(one)}{listed}"
        lines.append(f"{line}; {one.reason}" if one.reason else line)
        if one.unusable:  # not what: no one has approved the names in these sentences
            servers = mcpzip_command(config, "servers", one.name)
            things = "1 thing" if one.unusable == 1 else f"{one.unusable} things"
            lines.append(f"  {things} in its lists can't be used: a person sees them with {servers}")
        lines.extend(f"  {warning}" for warning in one.warnings[one.unusable :])
        if one.held:
            review = mcpzip_command(config, "review", one.name)
            lines.append(f"  {one.held} held back: a person can look at them with {review}")
        if one.suspect:
            lines.append(f"  {suspected(one.suspect)}")
    return "\n".join(lines)


def _beside(one: ServerStatus) -> str:
    counts = ((one.prompts, "prompt"), (one.resources, "resource"))
    return "".join(f"{count} {what}{'' if count == 1 else 's'}, " for count, what in counts if count)


def suspected(count: int) -> str:
    """A sentence about a server: so much is odd about its errors and questions."""
    return f"its errors and questions read as attacks do: {count} {'finding' if count == 1 else 'findings'}"
