"""The figures of programs in place of series of calls, as Markdown and as JSON (pure)."""

import statistics
from collections.abc import Callable, Sequence

import msgspec

from bench.tables import table
from bench.traces.account import Cost
from bench.traces.programs import LIMITS, Replaced
from bench.traces.report import change

_KEPT = tuple(f"keep {limit:,}" for limit in LIMITS)
_HEAD = ("series", "calls", "results", "program", "reply", "requests", *_KEPT, "as a program", "second try")
_SUMS = ("all together", "input", "input at cached prices", "output", "requests", "median", "cost more")


def programs_page(found: Sequence[Replaced], missing: Sequence[str], unit: str) -> str:
    """All series. A percentage is the change of the input of the whole trace."""
    rows = [
        [
            each.name.removeprefix("trajs/").removeprefix("mcp_servers/"),
            str(each.calls),
            f"{each.results:,}",
            f"{each.code:,}",
            f"{each.reply:,}",
            f"{each.direct.requests} → {each.program.requests}",
            *(change(each.kept[limit].input, each.direct.input) for limit in LIMITS),
            change(each.program.input, each.direct.input),
            change(each.retried.input, each.direct.input),
        ]
        for each in sorted(found, key=lambda each: each.program.input / each.direct.input)
    ]
    parts = [f"Programs in place of series of calls, in {unit}.", table(_HEAD, rows)]
    if found:
        parts.append(_sums(found))
    if missing:
        parts.append("\n".join(["Not replaced:", *(f"- {each}" for each in missing)]))
    return "\n\n".join(parts)


def programs_json(found: Sequence[Replaced], missing: Sequence[str], unit: str) -> bytes:
    """All series as JSON text."""
    series = [
        {
            **{key: value for key, value in vars(each).items() if not isinstance(value, Cost | dict)},
            "direct": vars(each.direct),
            "kept": {str(limit): vars(of) for limit, of in each.kept.items()},
            "program": vars(each.program),
            "retried": vars(each.retried),
        }
        for each in found
    ]
    text = msgspec.json.encode({"unit": unit, "series": series, "missing": list(missing)})
    return msgspec.json.format(text)


def _sums(found: Sequence[Replaced]) -> str:
    ways: list[tuple[str, Callable[[Replaced], Cost]]] = [
        *((f"keep {limit:,}", lambda each, n=limit: each.kept[n]) for limit in LIMITS),
        ("as a program", lambda each: each.program),
        ("as a program, at the second try", lambda each: each.retried),
    ]
    rows = []
    for name, way in ways:
        changes = [100 * (way(each).input / each.direct.input - 1) for each in found]
        direct = Cost()
        total = Cost()
        for each in found:
            direct.add(each.direct)
            total.add(way(each))
        rows.append(
            [
                name,
                change(total.input, direct.input),
                change(total.priced, direct.priced),
                change(total.output, direct.output),
                change(total.requests, direct.requests),
                f"{statistics.median(changes):+.1f} %".replace("-", "−"),
                str(sum(each > 0 for each in changes)),
            ]
        )
    return table(_SUMS, rows)
