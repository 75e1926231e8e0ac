"""Checks of servers: whether each one answers, and what is odd about its tools."""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from mcpzip.catalog import Failed
from mcpzip.config.paths import logs_folder
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.model.durations import age
from mcpzip.model.entry import Entry
from mcpzip.model.errors import NEEDS_LOGIN
from mcpzip.model.names import folded, join
from mcpzip.proxy.proxy import Proxy
from mcpzip.system import event_log
from mcpzip.system.event_log import Level, Stream
from mcpzip.system.log_files import LogReader

SLOW = 10.0
"""Seconds that a server may take to start and list its tools."""
OLD = 30 * 86_400.0
"""Seconds after which a list is called old."""
LONG_NAME = 64
"""Characters of a tool name that every client accepts."""
LARGE_SCHEMA = 20_000
"""Characters of a tool's definition that are called large."""
_EVIDENCE = 5  # lines of stderr, and names
_STDERR_LINES = 200


@dataclass(slots=True)
class Tried:
    """How a server answered. failure: why it did not, or "". seconds: until then. stderr: its last lines."""

    failure: str = ""
    seconds: float = 0.0
    stderr: list[str] = field(default_factory=list)


class _Collector:
    """An `event_log.Log` that remembers what servers write to stderr."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = defaultdict(list)

    def note(self, level: Level, server: str, event: str, text: str) -> None:
        pass

    def output(self, server: str, stream: Stream, lines: Sequence[bytes]) -> None:
        known = self.lines[server]
        known += [line[:500].decode("utf-8", "replace") for line in lines[-_STDERR_LINES:]]
        del known[:-_STDERR_LINES]


async def try_servers(proxy: Proxy, names: Sequence[str]) -> dict[str, Tried]:
    """Lists the servers ``names``, one after the other where they have to share the machine."""
    collector = _Collector()
    event_log.install(collector, lambda server: "")
    found = {name: Tried() for name in names}
    try:
        begin = time.monotonic()
        updates = {name: proxy.start_listing_of(name) for name in names}
        for name, task in updates.items():
            task.add_done_callback(partial(_took, found[name], begin))
        for name, task in updates.items():
            if isinstance(update := await task, Failed):
                found[name].failure = update.reason
    finally:
        event_log.install(None)
    for name, tried in found.items():
        tried.stderr = collector.lines[name]
    return found


def _took(one: Tried, begin: float, task: object) -> None:
    one.seconds = time.monotonic() - begin


def check_servers(setup: Setup, tried: dict[str, Tried]) -> Iterator[Finding]:
    """Whether the servers that were tried answered."""
    failed = any(one.failure for one in tried.values())
    reader = LogReader(logs_folder(setup.path), os.path.basename(setup.path))
    logged = {entry.server for entry in reader.read()} if failed else set()
    for name, one in tried.items():
        server = setup.servers.get(name)
        if server is None or server.problem:  # told by `check_config`
            continue
        evidence = _evidence(one)
        if one.failure.startswith(NEEDS_LOGIN):
            if server.per_user:  # people sign in to it, and who asks here need not
                continue
            command = setup.mcpzip("auth", "login", name)
            yield Finding(
                "error", "sign-in.needed", name, "It wants somebody to sign in.", (), "Sign in.", command
            )
        elif one.failure:
            yield Finding(
                "error",
                "servers.failing",
                name,
                f"It can't be used: {one.failure}.",
                evidence,
                "Fix what it says; its log may have more."
                if name in logged
                else "Fix what it says, and ask again.",
                setup.mcpzip("logs" if name in logged else "servers", name),
            )
        elif one.seconds > SLOW:
            yield Finding(
                "warning",
                "servers.slow",
                name,
                f"It took {one.seconds:.0f} s to start and list its tools.",
                evidence,
                "The first call of a session waits for it. A package that npx or uvx fetches each time is "
                "faster when it is installed.",
            )


def _evidence(one: Tried) -> tuple[str, ...]:
    """The lines of stderr from the one that the failure quotes, else the last ones."""
    lines = [line.strip() for line in one.stderr if line.strip()]
    quoted = [at for at, line in enumerate(lines) if line[:80] in one.failure]
    return tuple(lines[quoted[-1] :][:_EVIDENCE] if quoted else lines[-_EVIDENCE:])


def check_tools(setup: Setup, proxy: Proxy) -> Iterator[Finding]:
    """What is odd about the tools that are known."""
    now = time.time()
    for one in proxy.status():
        if one.state == "disabled":
            continue
        for warning in one.warnings:
            remedy = "Correct it if it is about the config; else tell the server's author."
            yield Finding("warning", "tools.oddity", one.name, warning, remedy=remedy)
        if one.listed_at is not None and now - one.listed_at > OLD:
            yield Finding(
                "warning",
                "tools.old",
                one.name,
                f"Its tools were listed {age(now - one.listed_at)} ago.",
                remedy="List them again.",
                command=setup.mcpzip("refresh", one.name),
            )
        elif one.listed_at is not None and not one.tools and setup.servers[one.name].tools_allow is None:
            remedy = "Nothing, if that is meant; its documentation says what it needs to offer some."
            yield Finding("note", "tools.none", one.name, "It offers no tools.", remedy=remedy)
    yield from _check_clashes(setup, proxy)
    yield from _check_long_names(setup, proxy)
    for entry in proxy.catalog.entries:
        name = join(entry.server, entry.tool)
        if not _has_object_schema(entry):
            yield Finding(
                "warning",
                "tools.schema",
                entry.server,
                f"The inputSchema of {name} is no schema of an object; some clients refuse the tool.",
                remedy="Tell its author.",
            )
        if len(entry.raw) > LARGE_SCHEMA:
            yield Finding(
                "note",
                "tools.large",
                entry.server,
                f"The definition of {name} has {len(entry.raw):,} characters; a model reads it whole.",
                remedy="Tell its author; or hide the tool with tools.deny.",
            )


def _check_clashes(setup: Setup, proxy: Proxy) -> Iterator[Finding]:
    """Tools of two servers whose names are the same but for case and separators."""
    named: dict[str, Entry] = {}
    clashes: dict[str, list[str]] = defaultdict(list)
    for entry in sorted(proxy.catalog.entries, key=lambda entry: entry.name):
        other = named.setdefault(folded(entry.name), entry)
        if other.server != entry.server:
            clashes[entry.server].append(f"{other.name}, {entry.name}")
    for server, pairs in clashes.items():
        yield Finding(
            "warning",
            "tools.clash",
            server,
            f"{_tools(len(pairs))} another server's only in case or separators, which models confuse.",
            tuple(pairs[:_EVIDENCE]),
            "Give the server another name.",
            setup.mcpzip("rename", server, _free(setup, f"{server}-2")),
        )


def _tools(count: int) -> str:
    return "A tool differs from" if count == 1 else f"{count} tools differ from"


def _check_long_names(setup: Setup, proxy: Proxy) -> Iterator[Finding]:
    """Tools that are shown directly under names that some clients refuse."""
    long: dict[str, list[str]] = defaultdict(list)
    for entry in proxy.catalog.entries:
        shown = proxy.config.expose == "direct" or bool(setup.servers[entry.server].pin)
        name = join(entry.server, entry.tool)
        if shown and len(name) > LONG_NAME:
            long[entry.server].append(name)
    for server, found in long.items():
        most, short = max(map(len, found)), server[:8].rstrip("_.-")
        yield Finding(
            "warning",
            "tools.long-name",
            server,
            f"Some tools that are shown have names of up to {most} characters; some clients take {LONG_NAME}."
            if len(found) > 1
            else f"A tool that is shown has a name of {most} characters; some clients take {LONG_NAME}.",
            tuple(found[:_EVIDENCE]),
            "mcpzip shows it under a shorter name."
            + (" A shorter name of the server would keep it whole." if short != server else ""),
            setup.mcpzip("rename", server, _free(setup, short)) if short != server else "",
        )


def _free(setup: Setup, name: str) -> str:
    """``name``, or with a number if there is such a server."""
    free, number = name, 2
    while setup.config is not None and free in setup.config.servers:
        free, number = f"{name}-{number}", number + 1
    return free


def _has_object_schema(entry: Entry) -> bool:
    """Whether the tool's ``inputSchema`` is what every client expects (spec: server/tools)."""
    schema = json.loads(entry.raw).get("inputSchema")
    return isinstance(schema, dict) and schema.get("type", "object") == "object"
