"""The figures as SVG, one plot a quantity. No I/O.

The rule: a plot needs no script and no font of its own, follows the reader's light or dark colours by a media
query, and says every value as a number, so that nothing depends on colours alone.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from bench.suite.figures import (
    GROWING,
    QUANTITIES,
    ROWS,
    SERVERS,
    SPREAD,
    STEPS,
    Figure,
    Quantity,
    Results,
    Row,
    Shown,
    growth_rows,
)

_WIDTH, _LABELS, _VALUES = 760, 210, 120
_TOP, _LINE, _BOTTOM = 58, 26, 40
_HEIGHT = 400
_SERIES = (
    ("#0969da", "#58a6ff"),
    ("#8250df", "#bc8cff"),
    ("#bc4c00", "#f0883e"),
    ("#1a7f37", "#3fb950"),
    ("#bf3989", "#f778ba"),
    ("#9a6700", "#d29922"),
    ("#0a7d91", "#39c5cf"),
    ("#cf222e", "#ff7b72"),
)
"""The colours of lines, on a light and on a dark ground."""
_SHAPES = ("circle", "square", "triangle", "diamond")
_STYLE = """\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:600}.small{font-size:12px;fill:#59636e}.grid{stroke:#d1d9e0}
.back{fill:#fff}.spread{stroke-width:5;stroke-opacity:.4;stroke-linecap:round}
.line{fill:none;stroke-width:2}.ours{fill:#0969da;stroke:#0969da}.peer{fill:#bc4c00;stroke:#bc4c00}
.base{fill:#59636e;stroke:#59636e}.mark{stroke:none}
.value{paint-order:stroke;stroke:#fff;stroke-width:4px}"""
_DARK = """\
text{fill:#f0f6fc}.small{fill:#9198a1}.grid{stroke:#3d444d}.back{fill:#0d1117}
.ours{fill:#58a6ff;stroke:#58a6ff}.peer{fill:#f0883e;stroke:#f0883e}.base{fill:#9198a1;stroke:#9198a1}.value{stroke:#0d1117}"""


class Axis:
    """From values to positions between two edges; logarithmic if the values differ by more than tenfold."""

    def __init__(self, values: Sequence[float], low: float, high: float, *, log: bool | None = None) -> None:
        """low, high: the positions of the least and the most value."""
        least, most = min(values), max(values)
        self._low, self._high = low, high
        self.log = least > 0 and (most / least > 10 if log is None else log)
        self.ticks = _decades(least, most) if self.log else _steps(min(least, 0), max(most, 0))
        self._first, self._last = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])

    def at(self, value: float) -> float:
        """The position of ``value``."""
        share = (self._scaled(value) - self._first) / ((self._last - self._first) or 1)
        return self._low + share * (self._high - self._low)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def _decades(least: float, most: float) -> list[float]:
    """Powers of ten around the values; with few of them also twice and five times these."""
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    last = max(last, first + 1)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    every = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    start = max(number for number, value in enumerate(every) if value <= least * 1.0001)
    end = min(
        (number for number, value in enumerate(every) if value >= most * 0.9999), default=len(every) - 1
    )
    return every[start : max(end, start + 1) + 1]


def _steps(least: float, most: float) -> list[float]:
    """About five round numbers that enclose the values."""
    rough = ((most - least) or 1) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [number * step for number in range(math.floor(least / step), math.ceil(most / step) + 1)]


def row_plot(results: Results, row: Row) -> str:
    """The subjects of ``row``, the best first: the median as a dot, the quartiles as a bar, the number."""
    of, found = QUANTITIES[row.quantity], results.of(row)
    height = _TOP + _LINE * len(found) + _BOTTOM
    edges = [edge * of.factor for _, one in found for edge in (*one.quartiles, one.median)]
    axis = Axis(edges, _LABELS + 10, _WIDTH - _VALUES)
    bottom = height - _BOTTOM + 6
    parts = [*_head(_plain(row.title), _subtitle(of, axis), height)]
    for tick in axis.ticks:
        parts += _vertical(axis.at(tick), _TOP - 6, bottom, _number(tick))
    for number, (shown, one) in enumerate(found):
        y = _TOP + _LINE * number + _LINE / 2
        low, high = (axis.at(edge * of.factor) for edge in one.quartiles)
        kind, middle = _kind(shown), axis.at(one.median * of.factor)
        name = _plain(shown.title)
        parts += [
            f'<text x="{_LABELS}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<line class="spread {kind}" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<circle class="mark {kind}" cx="{middle:.1f}" cy="{y:.1f}" r="5"/>',
            f'<text class="value" x="{high + 12:.1f}" y="{y + 4:.1f}">{of.shown(one.median)}</text>',
        ]
    return _document(height, parts)


def every_plot(results: Results) -> dict[str, str]:
    """All plots, by file name without its ending."""
    rows = {row.key: row_plot(results, row) for row in ROWS if results.of(row)}
    return rows | growth_plots(results)


def growth_plots(results: Results) -> dict[str, str]:
    """A plot of each growing quantity by tools and by upstreams, by file name without its ending; those with
    less than three sizes are left out."""
    plots = {}
    for quantity in GROWING:
        for along in STEPS:
            rows = growth_rows(quantity, along)
            keys = [one.key for one in results.growing()]
            kept = {n: row for n, row in rows.items() if any(one.key in keys for one, _ in results.of(row))}
            if len(kept) >= 3:
                plots[f"growth-{quantity}-{along}"] = _growth(results, QUANTITIES[quantity], along, kept)
    return plots


def _growth(results: Results, of: Quantity, along: str, rows: Mapping[int, Row]) -> str:
    series: list[tuple[int, Shown, list[tuple[int, Figure]]]] = []
    for colour, shown in enumerate(results.growing()):  # the same in every plot
        found = [
            (number, one)
            for number, row in rows.items()
            if (one := results.get(row, shown.key)) and one.values
        ]
        if found:
            series.append((colour, shown, found))
    series.sort(key=lambda one: one[2][-1][1].median, reverse=not of.more)
    every = [one.median * of.factor for _, _, found in series for _, one in found]
    places = list(rows)
    across = Axis(places, 70, _WIDTH - _LABELS - 20, log=True)
    up = Axis(every, _HEIGHT - 56, _TOP, log=True)
    fixed = f"on {SERVERS} upstreams or more" if along == "tools" else f"with {SPREAD} tools in all"
    title = f"{_plain(of.title)}, by the number of {along}"
    parts = [*_head(title, f"{of.unit}, {fixed}; both scales are logarithmic", _HEIGHT)]
    for tick in up.ticks:
        y = up.at(tick)
        parts += [
            f'<line class="grid" x1="70" x2="{_WIDTH - _LABELS - 20}" y1="{y:.1f}" y2="{y:.1f}"/>',
            f'<text class="small" x="62" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>',
        ]
    for place in places:
        parts += _vertical(across.at(place), _TOP, _HEIGHT - 56, _short(place))
    for number, (colour, shown, found) in enumerate(series):
        points = [(across.at(place), up.at(one.median * of.factor)) for place, one in found]
        way = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line s{colour}" points="{way}"/>')
        parts += [_mark(colour, x, y) for x, y in points]
        x, y = _WIDTH - _LABELS, _TOP + 12 + number * 40
        last_place, last = found[-1]
        said = f"{of.shown(last.median)} {of.unit} at {last_place:,}"
        parts += [
            f'<line class="line s{colour}" x1="{x - 6}" x2="{x + 16}" y1="{y}" y2="{y}"/>',
            _mark(colour, x + 5, y),
            f'<text x="{x + 24}" y="{y + 4}">{escape(_plain(shown.title))}</text>',
            f'<text class="small" x="{x + 24}" y="{y + 20}">{said}</text>',
        ]
    return _document(_HEIGHT, parts, len(results.growing()))


def _mark(number: int, x: float, y: float) -> str:
    """A point of series ``number``: shapes differ, for readers who can't tell the colours apart."""
    kind = f'class="mark f{number}"'
    match _SHAPES[number % len(_SHAPES)]:
        case "circle":
            return f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        case "square":
            return f'<rect {kind} x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
        case "triangle":
            return f'<path {kind} d="M{x:.1f} {y - 5:.1f}l5 9h-10z"/>'
        case _:
            return f'<path {kind} d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5-5.5 5.5-5.5-5.5z"/>'


def _vertical(x: float, top: float, bottom: float, label: str) -> Iterable[str]:
    yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
    yield f'<text class="small" x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{label}</text>'


def _head(title: str, subtitle: str, height: int) -> Iterable[str]:
    yield f"<title>{escape(title)}</title>"
    yield f'<rect class="back" width="{_WIDTH}" height="{height}"/>'
    yield f'<text class="title" x="12" y="24">{escape(title)}</text>'
    yield f'<text class="small" x="12" y="42">{escape(subtitle)}</text>'


def _subtitle(of: Quantity, axis: Axis) -> str:
    better = "more is better" if of.more else "less is better"
    scale = ", logarithmic scale" if axis.log else ""
    return f"{of.unit}, {better}{scale}; dot: median, bar: quartiles"


def _document(height: int, parts: Iterable[str], series: int = 0) -> str:
    light, dark = _STYLE, _DARK
    for number in range(series):
        for style, colour in zip(("light", "dark"), _SERIES[number % len(_SERIES)], strict=True):
            rule = f"\n.s{number}{{stroke:{colour}}}.f{number}{{fill:{colour}}}"
            light, dark = (light + rule, dark) if style == "light" else (light, dark + rule)
    style = f"<style>{light}\n@media (prefers-color-scheme:dark){{{dark}}}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">'
    return "\n".join([head, style, *parts, "</svg>", ""])


def _kind(shown: Shown) -> str:
    return "ours" if shown.key.startswith("mcpzip") else "peer" if shown.peer else "base"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.3g}"


def _short(value: int) -> str:
    return f"{value // 1000}k" if value >= 1000 else f"{value}"


def _plain(text: str) -> str:
    """Without the marks of Markdown."""
    return text.replace("`", "")
