"""The calls that a program made, and what became of each (pure)."""

from collections import Counter
from typing import Literal

import msgspec

from mcpzip.model.quoting import one_line

State = Literal["done", "failed", "refused", "may have run", "not run", "waits"]
"""failed: the tool ran and said so. refused, not run: nothing was sent. may have run: it was sent, and no
answer came. waits: for somebody to allow it.
"""
NAMES = 10
"""Names of tools in one sentence."""


class Entry(msgspec.Struct):
    """A call. tool: under the name that clients see. tokens: of its result, about."""

    tool: str
    state: State = "may have run"
    tokens: int = 0


class Journal:
    """The calls of one program, in the order in which they began."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def begin(self, tool: str) -> Entry:
        """A call that is about to be made. Until more is known, it may have run."""
        self.entries.append(entry := Entry(tool))
        return entry

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def tokens(self) -> int:
        """Of all results, about."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def text(self) -> str:
        """``2 calls: files__read, mail__send (may have run)``."""
        if not self.entries:
            return "no calls"
        counts = Counter((entry.tool, entry.state) for entry in self.entries)
        shown = [_one(tool, state, number) for (tool, state), number in counts.most_common(NAMES)]
        if len(counts) > NAMES:
            shown.append(f"{len(counts) - NAMES} more")
        number = len(self.entries)
        return f"{number} call{'s' if number > 1 else ''}: {', '.join(shown)}"

    @property
    def may_have_run(self) -> bool:
        """Whether of some call it isn't known if it ran."""
        return any(entry.state == "may have run" for entry in self.entries)

    def as_json(self) -> list[dict[str, str]]:
        """For ``_meta``."""
        return [{"tool": entry.tool, "state": entry.state} for entry in self.entries]


def _one(tool: str, state: State, number: int) -> str:
    times = f" ×{number}" if number > 1 else ""
    return f"{one_line(tool)}{times}" if state == "done" else f"{one_line(tool)}{times} ({state})"
