"""The counts of used tools while mcpzip runs, which are added to the file now and then (`tool_usage`)."""

import math
import time
from collections.abc import Callable

from mcpzip.proxy.tool_usage import UnusableUsageFileError, UseCount, UseCounts, added, counts, load, save
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.threads import in_thread

SAVE_AFTER = 3.0
"""Seconds from a call until it is saved."""

_ONE_TIME = 60.0
"""Seconds within which calls count as of one time: to decay each would take longer than all else about it."""


class UsageStore:
    """The counts of this process and of others that share the file at ``path``. Everything runs on one event
    loop.

    clock: Unix seconds. warn: called with a problem of the file, once.
    """

    def __init__(
        self, path: str, warn: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._path, self._warn, self._clock = path, warn, clock
        self._saved: UseCounts | None = None  # the file when it was last read or written
        self._earlier: dict[str, UseCount] = {}  # since then
        self._calls: dict[str, int] = {}  # the newest of these, by tool
        self._called_at = -math.inf  # the first of the newest
        self._being_saved: dict[str, UseCount] = {}
        self._saving = DelayedSave(self._save, "keep usage")
        self._broken = False
        self.revision = 0
        """Changes whenever the counts change by more than decay."""

    def record(self, name: str) -> None:
        """Counts a successful call of the tool called ``name``."""
        if self._broken:
            return
        if (now := self._clock()) - self._called_at > _ONE_TIME:
            self._earlier, self._calls, self._called_at = self._unsaved(), {}, now
        self._calls[name] = self._calls.get(name, 0) + 1
        self.revision += 1
        self._saving.want(SAVE_AFTER)

    def counts(self) -> dict[str, float]:
        """The counts of all tools now; see the function `counts`."""
        if self._saved is None:
            self._saved = self._load()
        uses = added(added(self._saved, self._being_saved), self._unsaved())
        return counts(uses, self._clock())

    def _unsaved(self) -> dict[str, UseCount]:
        newest = {name: UseCount(float(calls), self._called_at) for name, calls in self._calls.items()}
        return added(self._earlier, newest)

    async def close(self) -> None:
        """Saves what is unsaved."""
        await self._saving.flush()

    def _load(self) -> UseCounts:
        try:
            uses, warnings = load(self._path)
        except UnusableUsageFileError as error:
            self._give_up(error)
            return {}
        for warning in warnings:
            self._warn(warning)
        return uses

    def _give_up(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            self._warn(f"Uses of tools are not counted: {error}.")

    async def _save(self) -> None:
        unsaved, now = self._unsaved(), self._clock()
        self._being_saved, self._earlier, self._calls = unsaved, {}, {}
        if self._saved is None:
            self._saved = self._load()
        try:
            if not self._broken:
                self._saved = await in_thread(lambda: self._add(unsaved, now), "keep usage")
        except (OSError, UnusableUsageFileError) as error:
            self._give_up(error)
        self._being_saved = {}
        self.revision += 1

    def _add(self, unsaved: UseCounts, now: float) -> UseCounts:
        kept, _ = load(self._path)
        return save(self._path, added(kept, unsaved), now)
