"""Runs `mcpzip` and measures every turn of its event loop.

    python -m bench.turns FILE serve --config CONFIG

The rule: a turn is the work between two waits of the loop. FILE is written whenever a turn is the longest so
far: JSON with the longest by wall time and by processor time, in ms, and the callbacks of each.
"""

import asyncio
import json
import selectors
import sys
import time
from pathlib import Path
from typing import Any

Real: Any = selectors.DefaultSelector


class Turns:
    """The longest turns so far, in ms."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.longest: dict[str, object] = {"wall": 0.0, "cpu": 0.0, "wall_ran": "", "cpu_ran": "", "turns": 0}
        self.count = 0
        self.ran = ("", 0.0)

    def took(self, wall: float, cpu: float) -> None:
        self.count += 1
        news = {
            key: round(value * 1000, 1)
            for key, value in (("wall", wall), ("cpu", cpu))
            if value * 1000 > float(str(self.longest[key])) + 0.05
        }
        if news:
            self.longest |= {**news, **{f"{key}_ran": self.ran[0] for key in news}, "turns": self.count}
            self.file.write_text(json.dumps(self.longest))
        self.ran = ("", 0.0)


def measured(turns: Turns) -> type:
    """The selector of the loop, which measures the turns."""

    class Measured(Real):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._since: tuple[float, float] | None = None

        def select(self, timeout: float | None = None) -> Any:
            if self._since is not None:
                wall, cpu = self._since
                turns.took(time.perf_counter() - wall, time.thread_time() - cpu)
            found = super().select(timeout)
            self._since = (time.perf_counter(), time.thread_time())
            return found

    return Measured


def main() -> None:
    turns = Turns(Path(sys.argv[1]))
    handles: Any = asyncio.Handle
    run = handles._run

    def timed(handle: asyncio.Handle) -> None:
        begun = time.perf_counter()
        run(handle)
        if (took := time.perf_counter() - begun) > turns.ran[1] and took > 0.005:
            turns.ran = (repr(handle)[:300], took)

    handles._run = timed
    selectors.DefaultSelector = measured(turns)  # type: ignore[misc,assignment]
    sys.argv = ["mcpzip", *sys.argv[2:]]
    from mcpzip.cli.main import main as mcpzip

    mcpzip()


if __name__ == "__main__":
    main()
