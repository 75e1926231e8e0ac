"""The figures of a replay as Markdown and as JSON (pure).

The rule: a corpus is a column. A percentage is the change from sending every result whole: less than 0 saves.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from bench.tables import table
from bench.traces.account import Cost
from bench.traces.replay import FETCHED, FETCHED_LIMITS, LARGE, LIMITS, LONG, Corpus, Played

WORST = 5
"""Traces that are named, of those where keeping costs more."""
DEFAULT = 10_000
"""The limit that mcpzip has without a setting."""
Row = tuple[str, Callable[[Corpus], str]]


def page(corpora: Sequence[Corpus], unit: str) -> str:
    """All figures. unit: what is counted, for people."""
    parts = [
        f"Counted in {unit}; which results are kept is decided by mcpzip's own estimate.",
        _table(corpora, _rows()),
        _losing_table(corpora),
    ]
    for corpus in corpora:
        parts += _worst(corpus)
    skipped = [f"- {corpus.name}: {why}" for corpus in corpora for why in corpus.unread]
    if skipped:
        parts.append("\n".join(["Skipped:", *skipped]))
    return "\n\n".join(parts)


def as_json(corpora: Sequence[Corpus], unit: str) -> bytes:
    """All figures, those of each trace too, as JSON text."""
    return msgspec.json.format(msgspec.json.encode({"unit": unit, "corpora": [_json(c) for c in corpora]}))


def percentile(values: Sequence[int], share: float) -> int:
    """The smallest of ``values`` that is no less than ``share`` of them; 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def share_of_large(values: Sequence[int], limit: int) -> float:
    """The share of all tokens that is in results of more than ``limit`` tokens."""
    return sum(value for value in values if value > limit) / (sum(values) or 1)


def losing(corpus: Corpus, limit: int) -> list[Played]:
    """The traces where keeping costs more input than it saves, the worst first."""
    found = [each for each in corpus.played if each.kept[limit].input > each.direct.input]
    return sorted(found, key=lambda each: each.kept[limit].input / each.direct.input, reverse=True)


def why(of: Cost) -> str:
    """What a trace with this cost spent on kept results."""
    parts = of.read - of.whole
    read = [f"{of.whole} read whole"] * bool(of.whole) + [f"{parts} in parts"] * bool(parts)
    return f"{of.kept} kept, of which {' and '.join(read) or 'none read on'}; {of.extra} extra requests"


# --- the tables ---


def _rows() -> Iterator[Row]:
    yield "traces", lambda c: f"{len(c.played):,}"
    yield "results that a model read", lambda c: f"{len(c.results):,}"
    yield "of these, of tools of the harness", lambda c: f"{c.own:,}"
    yield "calls a trace", lambda c: f"{len(c.results) / (len(c.played) or 1):.0f}"
    sizes = "tokens of a result: median / 90 % / 99 %"
    yield sizes, lambda c: " / ".join(f"{percentile(c.results, s):,}" for s in (0.5, 0.9, 0.99))
    words = " / ".join(f"{limit // 1000}k" for limit in LARGE)
    tail = f"tokens of results in those over {words}"
    yield tail, lambda c: " / ".join(f"{share_of_large(c.results, n):.0%}" for n in LARGE).replace("%", " %")
    yield "estimated tokens for one of a large result, median", lambda c: _ratio(c.estimates)
    yield "input over all requests, millions", lambda c: f"{c.total(_direct).input / 1e6:.1f}"
    yield "last request, mean", lambda c: f"{c.total(_direct).last / (len(c.played) or 1):,.0f}"
    for limit in LIMITS:
        yield from _kept_rows(limit)
    limits = " / ".join(f"{limit // 1000}k" for limit in LIMITS)
    name = f"traces over {LONG:,} tokens: direct → keep {limits}"
    yield name, lambda c: f"{_long(c, _direct)} → {' / '.join(_long(c, _kept(n)) for n in LIMITS)}"
    for limit in FETCHED_LIMITS:
        shares = " / ".join(f"{share:.0%}".rstrip("%") for share in FETCHED)
        name = f"keep {limit:,}, if {shares} % of the kept are read whole: input"
        yield name, lambda c, n=limit: " / ".join(_fetched(c, n, s) for s in FETCHED)  # type: ignore[misc]


def _kept_rows(limit: int) -> Iterator[Row]:
    kept = _kept(limit)

    def changes(*quantities: str) -> Callable[[Corpus], str]:
        return lambda c: " / ".join(
            change(getattr(c.total(kept), each), getattr(c.total(_direct), each)) for each in quantities
        )

    yield f"**keep {limit:,}**: input", lambda c: f"**{changes('input')(c)}**"
    yield "input at cached prices / last request", changes("priced", "last")
    yield "requests / output", changes("requests", "output")
    yield (
        "results kept / read on / of these whole",
        lambda c: " / ".join(f"{getattr(c.total(kept), q):,}" for q in ("kept", "read", "whole")),
    )


def _losing_table(corpora: Sequence[Corpus]) -> str:
    rows: list[Row] = []
    for limit in LIMITS:

        def cell(corpus: Corpus, limit: int = limit) -> str:
            lost = losing(corpus, limit)
            if not lost:
                return "none"
            touched = sum(each.kept[limit].kept > 0 for each in corpus.played)
            first = lost[0]
            worst = change(first.kept[limit].input, first.direct.input)
            return f"{len(lost)} of {touched}; worst {worst}"

        rows.append((f"keep {limit:,}", cell))
    return "Traces that cost more input, of those with a kept result:\n\n" + _table(corpora, rows)


def _worst(corpus: Corpus) -> Iterator[str]:
    for limit in (2_000, DEFAULT):
        if not (lost := losing(corpus, limit)):
            continue
        rows = [
            [_short(each.name), change(each.kept[limit].input, each.direct.input), why(each.kept[limit])]
            for each in lost[:WORST]
        ]
        head = ("trace", "input", "why")
        yield f"{corpus.form}, keep {limit:,}: the worst of {len(lost)}\n\n{table(head, rows)}"


def _table(corpora: Sequence[Corpus], rows: Iterator[Row] | Sequence[Row]) -> str:
    head = ("", *(corpus.form for corpus in corpora))
    return table(head, [[name, *(cell(corpus) for corpus in corpora)] for name, cell in rows])


def _direct(played: Played) -> Cost:
    return played.direct


def _ratio(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "–"


def _kept(limit: int) -> Callable[[Played], Cost]:
    return lambda played: played.kept[limit]


def _long(corpus: Corpus, chosen: Callable[[Played], Cost]) -> str:
    return str(sum(chosen(played).last > LONG for played in corpus.played))


def _fetched(corpus: Corpus, limit: int, share: float) -> str:
    cost = corpus.total(lambda played: played.fetched[limit, share])
    return change(cost.input, corpus.total(_direct).input)


def change(to: float, of: float) -> str:
    """The change in percent, for people."""
    if to == of:
        return "0"
    percent = 100 * (to / of - 1) if of else 0.0
    sign = "−" if percent < 0 else "+"
    return f"{sign}{abs(percent):.1f} %" if abs(percent) < 9.95 else f"{sign}{abs(percent):.0f} %"


def _short(name: str) -> str:
    """The name of a trace without what those of its collection share."""
    return name.partition("#")[2] or name.removesuffix("/messages.json").removesuffix(".json")


def _json(corpus: Corpus) -> dict[str, Any]:
    traces = [
        {
            "name": each.name,
            "direct": vars(each.direct),
            "kept": {str(limit): vars(of) for limit, of in each.kept.items()},
        }
        for each in corpus.played
    ]
    totals = {
        "direct": vars(corpus.total(_direct)),
        "kept": {str(n): vars(corpus.total(lambda p, n=n: p.kept[n])) for n in LIMITS},  # type: ignore[misc]
        "fetched": {
            str(n): {str(s): vars(corpus.total(lambda p, k=(n, s): p.fetched[k])) for s in FETCHED}  # type: ignore[misc]
            for n in FETCHED_LIMITS
        },
        "losing": {str(n): [each.name for each in losing(corpus, n)] for n in LIMITS},
        "missed": {str(n): corpus.missed[n] for n in LIMITS},
    }
    return {
        "folder": corpus.name,
        "format": corpus.form,
        "traces": len(corpus.played),
        "unread": corpus.unread,
        "results": {
            "number": len(corpus.results),
            "own": corpus.own,
            "estimated": statistics.median(corpus.estimates) if corpus.estimates else None,
            **{f"p{round(100 * s)}": percentile(corpus.results, s) for s in (0.5, 0.9, 0.99)},
            "share": {str(n): share_of_large(corpus.results, n) for n in LARGE},
        },
        "totals": totals,
        "each": traces,
    }
