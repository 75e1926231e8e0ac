"""Checks of what servers say: what `mcpzip.checks` finds in the lists that are known, and found in errors and
questions during calls, which processes that serve agents noted in the log."""

import os
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from mcpzip import checks
from mcpzip.catalog import Catalog
from mcpzip.checks import Others, check_items
from mcpzip.config.paths import logs_folder
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.model.quoting import shortened
from mcpzip.pins.surface import Surface
from mcpzip.proxy.heard import EVENT
from mcpzip.proxy.proxy import Proxy
from mcpzip.system.log_files import LogEntry, LogReader

_EVIDENCE = 5  # texts that are shown of a server
_EXCERPT = 100  # characters of one
LATELY = 7 * 86_400.0
"""Seconds for which what a server said during calls is told."""


def found_in(catalog: Catalog, servers: Collection[str]) -> Mapping[str, list[checks.Finding]]:
    """What the checks find about ``servers`` of ``catalog``, the worst first, by server."""
    items = {name: Surface(record).items for name, record in catalog.servers.items()}
    others = Others.of(items)
    return {name: check_items(items[name], others, name) for name in servers if name in items}


def in_brief(found: Collection[checks.Finding]) -> str:
    """How many findings of each severity there are: ``1 hard, 2 risky, 1 note``; "" if none is serious."""
    counts = Counter(one.severity for one in found)
    if not counts["hard"] and not counts["risky"]:
        return ""
    notes = counts["note"]
    told = [f"{counts[severity]} {severity}" for severity in ("hard", "risky") if counts[severity]]
    return ", ".join([*told, *([f"{notes} {'note' if notes == 1 else 'notes'}"] if notes else [])])


def described(one: checks.Finding) -> str:
    """A finding on one line."""
    what = f"{one.kind} {one.name}" if one.name else one.kind
    where = f" ({one.path})" if one.path else ""
    return f"{what[:100]}{where[:200]} {one.meaning}: “{one.excerpt}” [{one.check}]"


def check_texts(setup: Setup, proxy: Proxy) -> Iterator[Finding]:
    """What servers say that is written as attacks are."""
    for server, found in found_in(proxy.catalog, list(setup.servers)).items():
        hard = [one for one in found if one.severity == "hard"]
        risky = [one for one in found if one.severity == "risky"]
        notes = len(found) - len(hard) - len(risky)
        if hard:
            yield Finding(
                "warning",
                "texts.hard",
                server,
                f"{_texts(len(hard))} as only attacks do.",
                _lines(hard),
                whole=tuple(map(described, hard)),
                remedy="Read them before an agent uses the server. If you don't trust it, disable it.",
                command=setup.mcpzip("disable", server),
            )
        if risky:
            yield Finding(
                "note",
                "texts.risky",
                server,
                f"{_texts(len(risky))} as attacks do, and sometimes honest servers"
                f"{f'; beside {notes} of no concern' if notes else ''}.",
                _lines(risky),
                whole=tuple(map(described, risky)),
                remedy="Read them. To hide a tool, name it in the server's tools.deny.",
            )


def said_lately(config_path: str) -> Mapping[str, list[LogEntry]]:
    """What is odd about errors and questions of servers, each once, by server: the latest last."""
    reader = LogReader(logs_folder(config_path), os.path.basename(config_path))
    since, found = time.time() - LATELY, dict[str, dict[str, LogEntry]]()
    for entry in reader.read(EVENT):
        if entry.at >= since:
            found.setdefault(entry.server, {})[entry.text] = entry
    return {server: list(entries.values()) for server, entries in found.items()}


def check_said(setup: Setup) -> Iterator[Finding]:
    """Errors and questions of servers that are written as attacks are."""
    for server, entries in said_lately(setup.path).items():
        if server not in setup.servers:
            continue
        count = len(entries)
        yield Finding(
            "warning" if any(entry.level == "warning" for entry in entries) else "note",
            "texts.said",
            server,
            f"{_said(count)} as attacks do.",
            _some([entry.text for entry in reversed(entries)]),
            whole=tuple(entry.text for entry in entries),
            remedy="An agent has read them. If you don't trust the server, disable it.",
            command=setup.mcpzip("disable", server),
        )


def _said(count: int) -> str:
    return (
        "One of its errors or questions reads" if count == 1 else f"{count} of its errors and questions read"
    )


def _texts(count: int) -> str:
    return "One of its texts reads" if count == 1 else f"{count} of its texts read"


def _lines(found: list[checks.Finding]) -> tuple[str, ...]:
    """A line for each text, with all that is wrong with it and one excerpt, which isn't repeated."""
    by_text: dict[tuple[str, str, str], list[checks.Finding]] = {}
    for one in found:
        by_text.setdefault((one.kind, one.name, one.path), []).append(one)
    lines: dict[tuple[str, str], tuple[str, int]] = {}
    for (kind, name, path), wrong in by_text.items():
        meanings = "; ".join(dict.fromkeys(one.meaning for one in wrong))
        key = meanings, shortened(wrong[0].excerpt, _EXCERPT)
        where = f"{kind} {name}"[:100].strip() + (f" ({path[:100]})" if path else "")
        first, others = lines.get(key, (where, -1))
        lines[key] = first, others + 1
    return _some(
        [
            f"{where}{f' and {others} more' if others else ''}: {meanings}: “{excerpt}”"
            for (meanings, excerpt), (where, others) in lines.items()
        ]
    )


def _some(lines: list[str]) -> tuple[str, ...]:
    more = len(lines) - _EVIDENCE
    return (*lines[:_EVIDENCE], *([f"and {more} more (--json has all)"] if more > 0 else []))
