"""The figures as Markdown. No I/O."""

from collections.abc import Iterable, Iterator, Sequence

from bench.suite.figures import (
    GROWING,
    QUANTITIES,
    ROWS,
    SECTIONS,
    STEPS,
    Figure,
    Quantity,
    Results,
    Row,
    Shown,
    growth_rows,
)
from bench.suite.subjects import ALONE, MCPZIP
from bench.tables import table

OURS = (MCPZIP, ALONE)
"""The keys of mcpzip where it starts as its peers do: nothing of it runs yet."""
_NONE = "–"


def cell(of: Quantity, figure: Figure | None) -> str:
    """``median (lower quartile–upper quartile)``, of one value only that; a dash for nothing."""
    if figure is None or not figure.values:
        return _NONE
    if len(figure.values) == 1:
        return of.shown(figure.median)
    low, high = figure.quartiles
    return f"{of.shown(figure.median)} ({of.shown(low)}–{of.shown(high)})"


def section(results: Results, rows: Sequence[Row]) -> str:
    """A table with a column for each of ``rows`` and a line for each subject that has any figure in them;
    below it, why others are missing. "" if nothing was measured."""
    kept = [row for row in rows if results.of(row)]
    if not kept:
        return ""
    head = ["", *(f"{row.title} ({QUANTITIES[row.quantity].unit})" for row in kept)]
    body = [
        [one.title, *(cell(QUANTITIES[row.quantity], results.get(row, one.key)) for row in kept)]
        for one in results.subjects
        if any(_has(results, row, one) for row in kept)
    ]
    return "\n\n".join(
        [table(head, body), *_notes((subject, why, row.title) for subject, why, row in _why(results, kept))]
    )


def growth_table(results: Results, quantity: str, *, along: str) -> str:
    """A table of ``quantity``, a column a size; "" if there are less than two sizes. along: tools or
    upstreams."""
    of = QUANTITIES[quantity]
    rows = growth_rows(quantity, along)
    kept = {number: row for number, row in rows.items() if results.of(row)}
    if len(kept) < 2:
        return ""
    shown = [one for one in results.growing() if any(_has(results, row, one) for row in kept.values())]
    sizes = [f"{number:,}" for number in kept]
    body = [[one.title, *(_median(of, results.get(row, one.key)) for row in kept.values())] for one in shown]
    return table([f"{of.title} ({of.unit}), by {along}", *sizes], body)


def growth_notes(results: Results) -> str:
    """Why sizes are missing."""
    rows = [row for along in STEPS for quantity in GROWING for row in growth_rows(quantity, along).values()]
    missing = ((subject, why, row.size) for subject, why, row in _why(results, rows))
    return "\n\n".join(_notes(missing))


def better(results: Results) -> list[tuple[Row, Shown, Figure, Shown, Figure]]:
    """Where a peer is better than mcpzip: the row, mcpzip's best figure, and the best peer's. Their quartiles
    don't overlap, and the medians differ by more than a tenth."""
    found = []
    for row in ROWS:
        measured = results.of(row)
        ours = next(((one, figure) for one, figure in measured if one.key in OURS), None)
        peer = next(((one, figure) for one, figure in measured if one.peer), None)
        if ours is None or peer is None:
            continue
        if _beats(QUANTITIES[row.quantity], peer[1], ours[1]):
            found.append((row, *ours, *peer))
    return found


def _beats(of: Quantity, peer: Figure, ours: Figure) -> bool:
    (peer_low, peer_high), (low, high) = peer.quartiles, ours.quartiles
    if of.more:
        return peer_low > high and peer.median > 1.1 * ours.median
    return peer_high < low and 1.1 * peer.median < ours.median


def described(results: Results) -> str:
    """The machine, the versions and the subjects."""
    said = results.machine
    peers = ", ".join(f"{one.title} {one.version}" for one in results.subjects if one.peer)
    where = (
        f"{said['date']}, {said['processors']} processors ({said['processor']}), {said['memory_gb']} GB, "
        f"{said['system']}; load {said['load_before']} before the run and {said['load_after']} after "
        f"{said['seconds']} s of it. Python {said['python']}, mcpzip {said['mcpzip']}"
    )
    node = f", Node {said['node']}" if said["node"] else ""
    lines = [f"{where}{node}{f'; {peers}' if peers else ''}."]
    return "\n\n".join(
        [*lines, *(["\n".join(f"- {one}" for one in results.skipped)] if results.skipped else [])]
    )


def subjects_table(results: Results) -> str:
    """What each subject is."""
    return table(
        ["subject", "what it is"],
        [[f"{one.title} {one.version}".strip(), one.about] for one in results.subjects],
    )


def page(results: Results) -> str:
    """All of it."""
    parts = [described(results), subjects_table(results)]
    parts += [section(results, rows) for rows in SECTIONS.values()]
    for along in ("tools", "upstreams"):
        parts += [growth_table(results, quantity, along=along) for quantity in GROWING]
    parts.append(growth_notes(results))
    return "\n\n".join(part for part in parts if part)


def _has(results: Results, row: Row, subject: Shown) -> bool:
    figure = results.get(row, subject.key)
    return figure is not None and bool(figure.values)


def _median(of: Quantity, figure: Figure | None) -> str:
    return of.shown(figure.median) if figure is not None and figure.values else _NONE


def _why(results: Results, rows: Sequence[Row]) -> Iterator[tuple[str, str, Row]]:
    """(subject, sentence, row) of what is missing in ``rows``, where anything was measured."""
    for shown in results.subjects:
        for row in rows:
            figure = results.get(row, shown.key)
            if figure is not None and not figure.values and results.of(row):
                yield shown.title, figure.why, row


def _notes(missing: Iterable[tuple[str, str, str]]) -> list[str]:
    """A list with one line a subject and reason, of what is missing for it."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for subject, why, title in missing:
        grouped.setdefault((subject, why), []).append(title)
    lines = [
        f"- {subject}: {'; '.join(dict.fromkeys(titles))}. {why}"
        for (subject, why), titles in grouped.items()
    ]
    return ["\n".join(lines)] if lines else []
