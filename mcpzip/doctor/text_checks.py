"""Checks of what servers say: what `mcpzip.checks` finds in the lists that are known."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from mcpzip import checks
from mcpzip.catalog import Catalog
from mcpzip.checks import Others, check_items
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.pins.surface import Surface
from mcpzip.proxy.proxy import Proxy

_EVIDENCE = 5  # findings that are shown of a server


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
                "Read them before an agent uses the server. If you don't trust it, disable it.",
                setup.mcpzip("disable", server),
            )
        if risky:
            yield Finding(
                "note",
                "texts.risky",
                server,
                f"{_texts(len(risky))} as attacks do, and sometimes honest servers"
                f"{f'; beside {notes} of no concern' if notes else ''}.",
                _lines(risky),
                "Read them. To hide a tool, name it in the server's tools.deny.",
            )


def _texts(count: int) -> str:
    return "One of its texts reads" if count == 1 else f"{count} of its texts read"


def _lines(found: list[checks.Finding]) -> tuple[str, ...]:
    more = len(found) - _EVIDENCE
    return (*map(described, found[:_EVIDENCE]), *([f"and {more} more"] if more > 0 else []))
