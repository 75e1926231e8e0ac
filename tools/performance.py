"""Writes the measured parts of docs/performance.md, and its plots, from docs/performance.json.

    python tools/performance.py [FILE]

FILE, which `python -m bench --growth --out FOLDER` has written, becomes docs/performance.json first. Why a
peer is better, and what is to be reached, is written by hand in bench/performance.toml. A test compares page
and plots.
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.suite import tables  # noqa: E402
from bench.suite.figures import (  # noqa: E402
    GROWING,
    QUANTITIES,
    ROWS,
    SECTIONS,
    Figure,
    Quantity,
    Results,
    Row,
    read,
)
from bench.suite.plots import every_plot  # noqa: E402
from bench.tables import table  # noqa: E402

PAGE, DATA = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.json"
PLOTS = ROOT / "docs" / "pictures" / "performance"
BY_HAND = ROOT / "bench" / "performance.toml"

_PART = re.compile(r"<!-- measured: (.+?) -->\n.*?<!-- end of measured -->", re.DOTALL)
"""``<!-- measured: NAME -->``: a part that this tool writes."""


def page(results: Results, by_hand: Mapping[str, Any]) -> str:
    """The page, with its parts as they should be. Raises SystemExit if a reason is missing."""
    parts = {
        "machine": tables.described(results),
        "subjects": tables.subjects_table(results),
        "better": better(results, by_hand["why"]),
        "budgets": budgets(results, by_hand["budget"]),
        "growth": growth(results),
        **{f"section {name}": _section(results, rows) for name, rows in SECTIONS.items()},
    }

    def part(found: re.Match[str]) -> str:
        return f"<!-- measured: {found[1]} -->\n{parts[found[1]]}\n<!-- end of measured -->"

    return _PART.sub(part, PAGE.read_text("utf-8"))


def _section(results: Results, rows: Sequence[Row]) -> str:
    plots = [_plot(row.key, row.title) for row in rows if results.of(row)]
    return "\n\n".join([tables.section(results, rows), *plots])


def _plot(key: str, title: str) -> str:
    return f"![{title.replace('`', '')}](pictures/performance/{key}.svg)"


def growth(results: Results) -> str:
    """Tables and plots of what grows."""
    drawn, parts = every_plot(results), []
    for quantity in GROWING:
        for along in ("tools", "upstreams"):
            if (key := f"growth-{quantity}-{along}") in drawn:
                parts.append(tables.growth_table(results, quantity, along=along))
                parts.append(_plot(key, f"{QUANTITIES[quantity].title}, by {along}"))
    return "\n\n".join([*parts, tables.growth_notes(results)]) if parts else "Not measured in this run."


def better(results: Results, why: Mapping[str, str]) -> str:
    """Where a peer is better than mcpzip, and why. why: by the key of the row. Raises SystemExit."""
    found = tables.better(results)
    lacking = [row.key for row, *_ in found if row.key not in why]
    if lacking:
        raise SystemExit(
            f"Say in [why] of {BY_HAND.relative_to(ROOT)} why a peer is better: {', '.join(lacking)}"
        )
    if not found:
        return "Nowhere in this run."
    rows = []
    for row, ours, our_figure, peer, figure in found:
        of = QUANTITIES[row.quantity]
        less, more = sorted((figure.median, our_figure.median))
        times = f": {more / less:.1f} times better" if less > 0 else ""
        rows.append(
            [
                f"{row.title} ({of.unit})",
                f"{of.shown(our_figure.median)} ({ours.title})",
                f"{of.shown(figure.median)} ({peer.title}){times}",
                why[row.key],
            ]
        )
    return table(["what", "mcpzip's best", "the best peer", "why"], rows)


def budgets(results: Results, goals: Sequence[Mapping[str, Any]]) -> str:
    """What is to be reached, and whether it is."""
    rows = []
    for goal in goals:
        row = next(row for row in ROWS if row.key == goal["row"])
        of, figure = QUANTITIES[row.quantity], results.get(row, goal["subject"])
        base = _base(results, row, goal.get("of", ""))
        titles = {one.key: one.title for one in results.subjects}
        if figure is None or not figure.values or ("of" in goal and base is None):
            continue
        limit, shown, met = _judged(goal, of, figure, base, titles)
        rows.append(
            [f"{row.title}: {titles[goal['subject']]}", limit, f"**{shown}**{'' if met else ', over'}"]
        )
    return table(["what", "budget", "measured"], rows)


def _base(results: Results, row: Row, subject: str) -> Figure | None:
    """What ``subject`` takes: in ``row``, or until it is initialized if the row isn't for it."""
    found = results.get(row, subject) or results.get(Row("initialize"), subject)
    return found if found is not None and found.values else None


def _judged(
    goal: Mapping[str, Any], of: Quantity, figure: Figure, base: Figure | None, titles: Mapping[str, str]
) -> tuple[str, str, bool]:
    """The budget, the figure in its terms, and whether it is kept."""
    most = goal["limit"]
    if base is not None:
        ratio = figure.median / base.median
        return f"≤ {most} × {titles[goal['of']]}", f"{ratio:.2f} ×", ratio <= most
    value = figure.median * of.factor
    sign, met = ("≥", value >= most) if of.more else ("≤", value <= most)
    return f"{sign} {most:,} {of.unit}", f"{of.shown(figure.median)} {of.unit}", met


def main() -> None:
    if sys.argv[1:]:
        DATA.write_bytes(Path(sys.argv[1]).read_bytes())
    results = read(DATA.read_bytes())
    text = page(results, tomllib.loads(BY_HAND.read_text("utf-8")))
    PLOTS.mkdir(parents=True, exist_ok=True)
    drawn = every_plot(results)
    for old in PLOTS.glob("*.svg"):
        if old.stem not in drawn:
            old.unlink()
    for name, svg in drawn.items():
        (PLOTS / f"{name}.svg").write_text(svg, "utf-8", newline="\n")
    PAGE.write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
