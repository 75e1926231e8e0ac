"""What is measured, and the figures. No I/O.

The rule: a figure is a quantity of a subject with a number of tools on a number of upstreams: one value a
round, in seconds, bytes or a count; or a sentence that says why there is none.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

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
    "Calls": (Row("added", 30, 3), Row("result", 30, 3), Row("rate", 30, 3)),
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
"""Numbers of tools that growth is measured at, on `SERVERS` upstreams."""
UPSTREAMS = (1, 10, 100, 300)
SPREAD = 600
"""Numbers of upstreams that growth is measured at, and the tools on all of them together."""
GROWING = ("initialize", "first-search", "searchable", "search", "call", "memory")
"""The quantities whose growth is shown."""


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

    def as_json(self) -> dict[str, object]:
        """For a file; `read` is the reverse."""
        figures = []
        for one in self.figures:
            given = asdict(one)
            given["values"] = [float(f"{value:.6g}") for value in one.values]
            figures.append({key: value for key, value in given.items() if value not in ("", [], ())})
        return {
            "machine": dict(self.machine),
            "subjects": [asdict(one) for one in self.subjects],
            "skipped": list(self.skipped),
            "figures": figures,
        }


def read(data: Mapping[str, object]) -> Results:
    """The results of a file's JSON."""

    def each(key: str) -> Iterable[dict[str, object]]:
        return data[key]  # type: ignore[return-value]

    figures = [Figure(**{**one, "values": tuple(one.get("values", ()))}) for one in each("figures")]  # type: ignore[arg-type]
    subjects = [Shown(**one) for one in each("subjects")]  # type: ignore[arg-type]
    return Results(data["machine"], tuple(subjects), tuple(figures), tuple(data["skipped"]))  # type: ignore[arg-type]


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
