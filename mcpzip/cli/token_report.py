"""What tools cost in a model's context, as figures, as sentences, and as a page for a browser (pure)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape

from mcpzip.model import sanitize
from mcpzip.model.entry import Entry

_NAME = 200
"""Characters of a name that the page shows."""


@dataclass(frozen=True)
class SoFar:
    """What the mcpzip processes that serve agents now have sent: searches, calls of `describe_tool`, and the
    tokens of the replies to both, estimated from their bytes.
    """

    processes: int
    searches: int
    descriptions: int
    tokens: int


@dataclass(frozen=True)
class TokenReport:
    """unit: what is counted, for people. costs: of each tool. listed, instructions: of what mcpzip shows
    instead. search: the mean cost of a search.
    """

    unit: str
    costs: Mapping[Entry, int]
    listed: int
    instructions: int
    search: float
    so_far: SoFar

    @property
    def everything(self) -> int:
        """The tokens of all tools."""
        return sum(self.costs.values())

    @property
    def ours(self) -> int:
        """The tokens of mcpzip in every message."""
        return self.listed + self.instructions

    @cached_property
    def servers(self) -> list[tuple[str, int, int]]:
        """Name, tools and tokens of each server, the dearest first."""
        rows: dict[str, tuple[int, int]] = {}
        for entry, cost in self.costs.items():
            tools, total = rows.get(entry.server, (0, 0))
            rows[entry.server] = (tools + 1, total + cost)
        return sorted(((name, *row) for name, row in rows.items()), key=lambda row: (-row[2], row[0]))


def break_even(report: TokenReport) -> str:
    """Up to how many searches mcpzip saves context, as a sentence."""
    saved = report.everything - report.ours
    if saved <= 0:
        return "With so few tools mcpzip costs more than it saves in context."
    searches = f"{saved / report.search:,.0f}"
    return (
        f"A conversation costs less with mcpzip as long as fewer than {searches} searches are in its context."
    )


def so_far(report: TokenReport) -> str:
    """What the running processes have cost, as a sentence; "" if there are none."""
    now = report.so_far
    if not now.processes:
        return ""
    searches, descriptions = (
        _count(now.searches, "search", "searches"),
        _count(now.descriptions, "description"),
    )
    return (
        f"So far, in the agents that run now ({now.processes}): {searches} and {descriptions}, "
        f"whose replies took about {now.tokens:,} tokens."
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# ---- the page

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>What the tools cost</title>
<style>
:root {{ color-scheme: light dark; --bar: #0b7a75; --line: #8884; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0; }}
th, td {{ text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); }}
td:first-child {{ overflow-wrap: anywhere; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.bar {{ width: 40%; }}
.bar div {{ background: var(--bar); height: .8rem; min-width: 1px; }}
summary {{ cursor: pointer; font-weight: 600; }}
@media (prefers-color-scheme: dark) {{ :root {{ --bar: #4fd1c5; }} }}
</style>
</head>
<body>
<h1>What the tools cost in a model's context</h1>
<p>In every message: <strong>{everything}</strong> {unit} with all tools listed,
<strong>{ours}</strong> with mcpzip.
A search costs {search}: query and reply together, the mean of searches for these tools.
{break_even} {so_far}</p>
{comparison}
<h2>By server</h2>
{servers}
<h2>By tool</h2>
{tools}
</body>
</html>
"""


def page(report: TokenReport) -> str:
    """A page without a script, that loads nothing. Every text of a server is escaped, on one line."""
    details = "".join(
        f"<details><summary>{_text(name)}: {total:,}</summary>{_table('tool', _tools(report, name))}"
        "</details>\n"
        for name, _, total in report.servers
    )
    both = [("all tools listed", report.everything), ("mcpzip", report.ours)]
    return _PAGE.format(
        everything=f"{report.everything:,}",
        unit=_text(report.unit),
        ours=f"{report.ours:,}",
        search=f"{report.search:,.0f}",
        break_even=_text(break_even(report)),
        so_far=_text(so_far(report)),
        comparison=_table("in every message", both),
        servers=_table("server", [(name, total) for name, _, total in report.servers]),
        tools=details,
    )


def _tools(report: TokenReport, server: str) -> list[tuple[str, int]]:
    own = [(entry.tool, cost) for entry, cost in report.costs.items() if entry.server == server]
    return sorted(own, key=lambda row: (-row[1], row[0]))


def _table(what: str, rows: list[tuple[str, int]]) -> str:
    most = max(cost for _, cost in rows) or 1
    return "".join(
        ("<table><thead><tr>", *_head(what), "</tr></thead><tbody>", *_rows(rows, most), "</tbody></table>")
    )


def _head(what: str) -> Iterator[str]:
    yield f'<th scope="col">{_text(what)}</th><th scope="col" class="number">tokens</th>'
    yield '<th aria-hidden="true"></th>'


def _rows(rows: list[tuple[str, int]], most: int) -> Iterator[str]:
    for name, cost in rows:
        bar = f'<td class="bar" aria-hidden="true"><div style="width:{100 * cost / most:.1f}%"></div></td>'
        yield f'<tr><td>{_text(name)}</td><td class="number">{cost:,}</td>{bar}</tr>'


def _text(text: str) -> str:
    return escape(sanitize.one_line(text, _NAME))
