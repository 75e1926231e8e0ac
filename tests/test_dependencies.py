"""The oldest versions that may be installed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def bounds() -> dict[str, tuple[int, ...]]:
    """Of each package that mcpzip needs, the oldest version that it admits."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    found = {}
    for line in asked:
        match = re.fullmatch(r"([\w.-]+)(?:>=|==)([\d.]+?)(?:\.\*)?", line)
        assert match, f"{line} has no lower bound"
        found[match[1]] = tuple(map(int, match[2].split(".")))
    return found


def test_no_lower_bound_admits_a_known_hole() -> None:
    """h11 0.14 was admitted, which doesn't look at the end of a chunk (CVE-2025-43859)."""
    assert bounds()["h11"] >= (0, 16)


def test_no_lower_bound_admits_what_does_not_work() -> None:
    """msgspec 0.20 raises no ValueError; rich 14 leaves an empty line behind a bar that nobody saw."""
    assert bounds()["msgspec"] >= (0, 21)
    assert bounds()["rich"] >= (15,)
