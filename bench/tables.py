"""Prints figures."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """One quantity, with one value a round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    def per(self, other: "Series") -> tuple[float, float]:
        """The ratio to ``other``, by the medians and by the minima."""
        return self.median / other.median, self.least / other.least


class Samples:
    """The measured values: (subject, quantity) -> one value a round."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[float]] = {}

    def add(self, subject: str, quantity: str, value: float) -> None:
        self._values.setdefault((subject, quantity), []).append(value)

    def get(self, subject: str, quantity: str) -> Series | None:
        values = self._values.get((subject, quantity))
        return Series(tuple(values)) if values else None

    def __getitem__(self, key: tuple[str, str]) -> Series:
        return Series(tuple(self._values[key]))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def spread(series: Series | None, unit: float, digits: int = 1) -> str:
    """``median (least)``; unit: the factor from measured to shown values."""
    if series is None:
        return "–"
    return f"{series.median / unit:.{digits}f} ({series.least / unit:.{digits}f})"


def times(ratio: tuple[float, float]) -> str:
    """A ratio by medians and, in brackets, by minima."""
    return f"{ratio[0]:.2f} ({ratio[1]:.2f})"
