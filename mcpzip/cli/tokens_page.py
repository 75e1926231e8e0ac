"""What tools cost as one HTML page that needs no script, no other file and no network (pure).

The rule: every text from a server is escaped by `e`, and characters that act, hide or reorder text become
visible escapes. The content security policy allows the page's own style and nothing else. Bars are drawn as
SVG, because a policy without inline styles forbids widths in CSS.
"""

import base64
import hashlib
from datetime import UTC, datetime
from html import escape

from mcpzip import __version__
from mcpzip.model import sanitize
from mcpzip.model.signature import summary
from mcpzip.server.token_costs import Costs

_MOST_TOOLS = 20_000
"""Tools that are listed; the rest are counted."""
_LONGEST = 300  # characters of a name
_WIDTH, _HEIGHT = 640, 260  # of the chart, in its own units
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 40  # its margins

_CSS = """
:root {
  color-scheme: light dark;
  --page: #f6f6f4; --card: #fff; --ink: #1d2126; --soft: #59626c; --line: #dfe0dd;
  --bar: #3f8f63; --all: #a8241c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181b; --card: #1d2024; --ink: #e4e6e8; --soft: #a0a8b1; --line: #33383e; --bar: #4f9f74;
    --all: #ff9d94;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif;
}
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.125rem; margin-top: 2rem; }
p, caption, footer { color: var(--soft); } caption { text-align: start; padding-bottom: 0.5rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 0.75rem; }
dl div, figure, .box {
  background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 0;
  padding: 0.75rem 1rem;
}
dt { color: var(--soft); font-size: 0.875rem; } dd { margin: 0; font-size: 1.375rem; }
.box { overflow-x: auto; margin-bottom: 0.75rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.25rem 0.5rem; border-top: 1px solid var(--line); vertical-align: top; text-align: start; }
thead th { border-top: 0; color: var(--soft); font-weight: 400; white-space: nowrap; }
tbody th { font-weight: 400; font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { width: 8rem; } .bar svg { display: block; width: 100%; height: 0.75rem; margin-top: 0.375rem; }
.bar rect, .mark { fill: var(--bar); } .about { overflow-wrap: anywhere; color: var(--soft); }
summary { cursor: pointer; padding: 0.25rem 0; overflow-wrap: anywhere; }
figure svg { display: block; width: 100%; height: auto; }
figure text { fill: var(--soft); font-size: 13px; }
.axis { stroke: var(--line); } .everything, .mcpzip { fill: none; stroke-width: 2.5; }
.everything { stroke: var(--all); } .mcpzip { stroke: var(--bar); }
"""


def render(costs: Costs, now: datetime | None = None) -> str:
    """``costs`` as an HTML document. now: the time that it says; None: the present."""
    when = (now or datetime.now(UTC)).astimezone(UTC)
    style = base64.b64encode(hashlib.sha256(_CSS.encode()).digest()).decode()
    servers = costs.by_server()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{style}'; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What tools cost in context</title>
<style>{_CSS}</style>
</head>
<body>
<main>
<h1>What {_count(len(costs.tools), "tool")} of {_count(len(servers), "server")} cost in context</h1>
<p>Counted in {e(costs.unit)}. A tool counts with its name, description and input schema as compact JSON.
<time datetime="{when.isoformat(timespec="minutes")}">{when:%Y-%m-%d %H:%M} UTC</time></p>
<dl>
{_figure_of("All tools, in every message", costs.all)}
{_figure_of("mcpzip, in every message", costs.ours)}
{_figure_of("A search: query and reply", round(costs.search.tokens))}
{_figure_of("Searches until break-even", costs.break_even)}
</dl>
<h2>Break-even</h2>
{_chart(costs)}
{_so_far(costs)}
<h2>By server</h2>
<div class="box"><table>
<caption>What the tools of each server take in every message where all are listed</caption>
<thead><tr><th scope="col">Server</th><th scope="col" class="number">Tools</th>\
<th scope="col" class="number">Tokens</th><th scope="col" class="number">Share</th>\
<th scope="col"><span>Compared</span></th></tr></thead>
<tbody>
{_server_rows(costs, servers)}
</tbody>
</table></div>
<h2>By tool</h2>
{_tools(costs, servers)}
</main>
<footer><p>mcpzip {e(__version__)}</p></footer>
</body>
</html>
"""


def e(text: str) -> str:
    """``text`` on one line, escaped for an element or a quoted attribute."""
    return escape(sanitize.one_line(text, _LONGEST), quote=True)


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _count(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def _figure_of(name: str, value: int) -> str:
    return f"<div><dt>{e(name)}</dt><dd>{_number(value)}</dd></div>"


def _bar(value: float, most: float) -> str:
    width = 100 * value / max(most, 1)
    return (
        '<td class="bar"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{max(width, 0.5):.1f}" height="10"/></svg></td>'
    )


def _server_rows(costs: Costs, servers: list[tuple[str, int, int]]) -> str:
    most = max(tokens for *_, tokens in servers)
    return "\n".join(
        f'<tr><th scope="row"><bdi>{e(name)}</bdi></th><td class="number">{_number(tools)}</td>'
        f'<td class="number">{_number(tokens)}</td><td class="number">{tokens / max(costs.all, 1):.1%}</td>'
        f"{_bar(tokens, most)}</tr>"
        for name, tools, tokens in servers
    )


def _tools(costs: Costs, servers: list[tuple[str, int, int]]) -> str:
    left, parts = _MOST_TOOLS, []
    most = max(costs.tools.values())
    for name, tools, tokens in servers:
        if left <= 0:
            break
        rows = "\n".join(
            f'<tr><th scope="row"><bdi>{e(entry.tool)}</bdi></th><td class="number">{_number(cost)}</td>'
            f'{_bar(cost, most)}<td class="about"><bdi>{e(summary(entry.description))}</bdi></td></tr>'
            for entry, cost in costs.of_server(name)[:left]
        )
        parts.append(
            f'<details class="box"><summary><bdi>{e(name)}</bdi>: {_count(tools, "tool")}, {_number(tokens)} '
            "tokens</summary>\n<table>"
            '<thead><tr><th scope="col">Tool</th><th scope="col" class="number">Tokens</th>'
            '<th scope="col"><span>Compared</span></th><th scope="col">What it does</th></tr></thead>\n'
            f"<tbody>\n{rows}\n</tbody></table></details>"
        )
        left -= tools
    if left < 0 or len(parts) < len(servers):
        listed = f"{_MOST_TOOLS:,} of {len(costs.tools):,} tools are listed; mcpzip tokens --json lists all."
        parts.append(f"<p>{listed}</p>")
    return "\n".join(parts)


def _so_far(costs: Costs) -> str:
    sentences = costs.so_far_sentences()
    return f"<h2>So far</h2>\n<p>{' '.join(map(e, sentences))}</p>" if sentences else ""


def _chart(costs: Costs) -> str:
    """The tokens in the context over the number of searches in it: a constant where all tools are listed, a
    rising line with mcpzip. Its text says the same.
    """
    searches = max(2 * costs.break_even, 10)
    top = 1.1 * max(costs.all, costs.ours + searches * costs.search.tokens, 1)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / searches

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / top

    ours = costs.ours + searches * costs.search.tokens
    said = (
        f"With all tools listed a context has {_number(costs.all)} tokens. With mcpzip it has "
        f"{_number(costs.ours)}, and {_number(costs.search.tokens)} more for each search. "
    )
    said += (
        f"mcpzip costs less with fewer than {_number(costs.break_even)} searches."
        if costs.break_even
        else "With so few tools mcpzip costs more."
    )
    crossing = (
        f'<circle class="mark" cx="{x(costs.break_even):.1f}" cy="{y(costs.all):.1f}" r="5"/>'
        if costs.break_even
        else ""
    )
    below, middle = _HEIGHT - _BOTTOM + 18, (_LEFT + _WIDTH - _RIGHT) // 2
    ticks = "".join(
        f'<text x="{x(value):.1f}" y="{below}" text-anchor="{anchor}">{_number(value)}</text>'
        for value, anchor in ((0, "start"), (searches // 2, "middle"), (searches, "end"))
    )
    return f"""<figure>
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="chart">
<line class="axis" x1="{_LEFT}" y1="{y(0):.1f}" x2="{_WIDTH - _RIGHT}" y2="{y(0):.1f}"/>
<path class="everything" d="M{x(0):.1f} {y(costs.all):.1f}H{x(searches):.1f}"/>
<path class="mcpzip" d="M{x(0):.1f} {y(costs.ours):.1f}L{x(searches):.1f} {y(ours):.1f}"/>
{crossing}
<text x="{_LEFT - 8}" y="{y(costs.all) + 4:.1f}" text-anchor="end">{_number(costs.all)}</text>
<text x="{_LEFT - 8}" y="{y(costs.ours) - 2:.1f}" text-anchor="end">{_number(costs.ours)}</text>
<text x="{_LEFT + 8}" y="{y(costs.all) - 8:.1f}">all tools listed</text>
<text x="{_WIDTH - _RIGHT}" y="{y(ours) - 8:.1f}" text-anchor="end">mcpzip</text>
{ticks}
<text x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle">searches in the context</text>
</svg>
<figcaption id="chart"><p>{e(said)}</p></figcaption>
</figure>"""
