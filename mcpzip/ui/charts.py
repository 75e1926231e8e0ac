"""Bars, drawn as SVG by a template: a policy without inline styles forbids widths in CSS (pure)."""

from collections.abc import Sequence

import msgspec

from mcpzip.model import sanitize

WIDTH = 100.0
"""Of the longest bar, in the chart's own units."""
_LABEL = 40
"""Characters of a label."""


class Bar(msgspec.Struct, frozen=True):
    """A value with a label. kind: its class in the stylesheet."""

    label: str
    value: float
    kind: str = "part"


class Drawn(msgspec.Struct, frozen=True):
    """A bar in a chart. width: 0 … `WIDTH`."""

    label: str
    value: float
    kind: str
    width: float


def bars(values: Sequence[Bar], most: float | None = None) -> list[Drawn]:
    """The bars, as wide as their values are beside ``most`` (default: the largest)."""
    top = most or max((one.value for one in values), default=0.0)
    return [
        Drawn(
            sanitize.one_line(one.label, _LABEL),
            one.value,
            one.kind,
            round(WIDTH * min(max(one.value / top, 0.0), 1.0), 2) if top > 0 else 0.0,
        )
        for one in values
    ]
