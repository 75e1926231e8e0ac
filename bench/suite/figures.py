"""What is measured, and the figures. No I/O.

The rule: a figure is a quantity of a subject with a number of tools on a number of upstreams: one value a
round, in seconds, bytes or a count; or a sentence that says why there is none.
"""

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import msgspec

TOOLS, SERVERS = 500, 10
"""Of a quantity that doesn't say otherwise."""
DIRECT = "direct"
"""The key of the subject without a proxy."""


@dataclass(frozen=True)
class Quantity:
    """Something that is measured. unit: of the shown values; factor: from seconds or bytes to it; more:
    whether more is better."""

    key: str
    group: str
    title: str
    unit: str
    factor: float
    more: bool = False

    def shown(self, value: float) -> str:
        """A value with three significant digits, without its unit."""
        value *= self.factor
        if abs(value) >= 100 or value == 0 or (self.factor == 1 and value == int(value)):
            return f"{value:,.0f}"
        return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}"


_MS, _MB = 1e3, 1e-6
QUANTITIES = {
    one.key: one
    for one in (
        Quantity("initialize-cold", "catalog", "spawn → `initialize`, first start ever", "ms", _MS),
        Quantity("initialize", "catalog", "spawn → `initialize`", "ms", _MS),
        Quantity("first-search", "catalog", "spawn → first search", "ms", _MS),
        Quantity("first-call", "startup", "spawn → first call", "ms", _MS),
        Quantity("first-search-slow", "startup", "spawn → first search, upstreams that take 2 s", "ms", _MS),
        Quantity("first-search-hung", "startup", "spawn → first search, one upstream hangs", "ms", _MS),
        Quantity("searchable", "catalog", "first start ever: spawn → new tools are searchable", "ms", _MS),
        Quantity("search", "catalog", "a search", "ms", _MS),
        Quantity("memory", "catalog", "resident memory of the proxy", "MB", _MB),
        Quantity("call", "catalog", "a call of 100 B", "ms", _MS),
        Quantity("added", "latency", "added to a call of 100 B", "ms", _MS),
        Quantity("result", "latency", "a call with 1 MB of result", "ms", _MS),
        Quantity("both", "latency", "a call with 1 MB there and back", "ms", _MS),
        Quantity("parallel", "latency", "64 calls of 50 ms in flight, all of them", "ms", _MS),
        Quantity("processor", "latency", "processor time of the proxy for a call of 100 B", "ms", _MS),
        Quantity("rate", "latency", "calls a second, 64 in flight", "calls/s", 1, more=True),
        Quantity("idle", "idle", "processor time of the idle proxy in a second", "ms", _MS),
        Quantity("agents-processes", "agents", "processes of ten agents with eight servers", "processes", 1),
        Quantity("agents-memory", "agents", "memory of ten agents with eight servers", "MB", _MB),
    )
}
GROUPS = ("catalog", "startup", "latency", "idle", "agents")


@dataclass(frozen=True)
class Row:
    """One row of the tables, and one plot: a quantity with a number of tools and upstreams."""

    quantity: str
    tools: int = TOOLS
    servers: int = SERVERS

    @property
    def key(self) -> str:
        """Its name in files: ``searchable-5000``."""
        of = QUANTITIES[self.quantity]
        return f"{self.quantity}-{self.tools}" if of.group == "catalog" else self.quantity

    @property
    def title(self) -> str:
        of = QUANTITIES[self.quantity]
        return f"{of.title}, {self.tools:,} tools" if of.group == "catalog" else of.title

    @property
    def size(self) -> str:
        """The numbers of tools and upstreams, in words."""
        return f"{self.tools:,} tools on {self.servers} upstreams"


SECTIONS = {
    "Start": (
        Row("initialize-cold"),
        Row("initialize"),
        Row("first-search"),
        Row("first-search-slow", 30, 3),
        Row("first-search-hung", 20, 2),
        Row("first-call", 30, 3),
    ),
    "Search": (Row("searchable"), Row("searchable", 5_000), Row("search"), Row("search", 5_000)),
    "Calls": tuple(
        Row(quantity, 30, 3) for quantity in ("added", "result", "both", "rate", "parallel", "processor")
    ),
    "Memory and processes": (
        Row("memory"),
        Row("memory", 5_000),
        Row("agents-memory", 80, 8),
        Row("agents-processes", 80, 8),
        Row("idle"),
    ),
}
"""The tables, and the rows of each: its columns."""
ROWS = tuple(row for rows in SECTIONS.values() for row in rows)
SIZES = (50, 500, 5_000, 50_000, 100_000)
"""Numbers of tools that growth is measured at."""
UPSTREAMS = (1, 10, 100, 300)
SPREAD = 600
"""Numbers of upstreams that growth is measured at, and the tools on all of them together."""
STEPS = {
    # mcpzip takes a list of at most 12 MiB from one server: 5,000 of these tools are half of that.
    "tools": {size: (size, max(SERVERS, size // 5_000)) for size in SIZES},
    "upstreams": {count: (SPREAD, count) for count in UPSTREAMS},
}
"""What grows: each number of it, with the numbers of tools and upstreams that it is measured with."""
GROWING = ("initialize", "first-search", "searchable", "search", "call", "memory")
"""The quantities whose growth is shown."""


def growth_rows(quantity: str, along: str) -> dict[int, Row]:
    """The row of each number of tools, or of upstreams."""
    return {number: Row(quantity, *setup) for number, setup in STEPS[along].items()}


@dataclass(frozen=True)
class Figure:
    """The values of one quantity of one subject; why: a sentence if there are none."""

    quantity: str
    subject: str
    tools: int = TOOLS
    servers: int = SERVERS
    values: tuple[float, ...] = ()
    why: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile; with fewer than three values the least and the most."""
        if len(self.values) < 3:
            return min(self.values), max(self.values)
        lower, _, upper = statistics.quantiles(self.values, n=4, method="inclusive")
        return lower, upper


@dataclass(frozen=True)
class Shown:
    """A subject as reports show it. about: what it is, as a sentence; peer: whether it is another's proxy."""

    key: str
    title: str
    version: str
    about: str
    peer: bool


@dataclass(frozen=True)
class Results:
    """All of a run. machine: what it was measured on (`machine`); skipped: a sentence for each subject that
    was not measured."""

    machine: Mapping[str, object]
    subjects: tuple[Shown, ...]
    figures: tuple[Figure, ...]
    skipped: tuple[str, ...] = ()
    _found: dict[tuple[str, str, int, int], Figure] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for one in self.figures:
            self._found[one.quantity, one.subject, one.tools, one.servers] = one

    def get(self, row: Row, subject: str) -> Figure | None:
        """The figure of ``subject`` in ``row``; None if the row isn't for it."""
        return self._found.get((row.quantity, subject, row.tools, row.servers))

    def of(self, row: Row) -> list[tuple[Shown, Figure]]:
        """The figures with values in ``row``, the best first."""
        found = [(shown, one) for shown in self.subjects if (one := self.get(row, shown.key)) and one.values]
        return sorted(found, key=lambda one: one[1].median, reverse=QUANTITIES[row.quantity].more)

    def growing(self) -> list[Shown]:
        """The subjects whose growth is measured: those through which tools are found."""
        found = {one.subject for one in self.figures if one.quantity == "searchable"}
        return [one for one in self.subjects if one.key in found]


def text(results: Results) -> str:
    """The JSON text of a file, a line for each figure; `read` is the reverse."""
    figures = []
    for one in results.figures:
        given = asdict(one) | {"values": [float(f"{value:.6g}") for value in one.values]}
        figures.append(json.dumps({key: value for key, value in given.items() if value not in ("", [])}))
    head = {
        "machine": dict(results.machine),
        "subjects": [asdict(one) for one in results.subjects],
        "skipped": list(results.skipped),
    }
    lines = ",\n  ".join(figures)
    opening = json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")
    return f'{opening},\n "figures": [\n  {lines}\n ]\n}}\n'


def read(file: str | bytes) -> Results:
    """The results of a file's text."""
    data = msgspec.json.decode(file)
    return Results(
        data["machine"],
        msgspec.convert(data["subjects"], tuple[Shown, ...]),
        msgspec.convert(data["figures"], tuple[Figure, ...]),
        tuple(data["skipped"]),
    )


def added(figures: Iterable[Figure]) -> list[Figure]:
    """The figures, and of each call of 100 B what it adds to a direct call: less the direct median."""
    every = list(figures)
    direct = [one for one in every if one.quantity == "call-direct" and one.subject == DIRECT and one.values]
    kept = [one for one in every if one.quantity != "call-direct"]
    for one in every:
        if one.quantity != "call-direct" or one.subject == DIRECT:
            continue
        if one.values and direct:
            values = tuple(value - direct[0].median for value in one.values)
            kept.append(Figure("added", one.subject, one.tools, one.servers, values))
        else:
            why = one.why or "The direct connection wasn't measured beside it."
            kept.append(Figure("added", one.subject, one.tools, one.servers, (), why))
    return kept
