"""The counts of used tools while mcpzip runs, and the words that led to them, which are added to the file now
and then (`tool_usage`).
"""

import math
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mcpzip.model.limits import STORE_TIME
from mcpzip.proxy.tool_usage import (
    Marks,
    UnusableUsageFileError,
    UseCount,
    UseCounts,
    added,
    counts,
    learned_words,
    load,
    marks_of,
    save,
)
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.proxy.shared_usage import SharedUsage
    from mcpzip.search.learned_words import LearnedWords

SAVE_AFTER = 3.0
"""Seconds from a call until it is saved."""
HEAR_AFTER = 60.0
"""Seconds after which it is looked at what others have counted."""
_CLOSING = 0.5
"""Seconds for the store at the end."""

_ONE_TIME = 60.0
"""Seconds within which calls count as of one time: to decay each would take longer than all else about it."""

_NO_WORDS: Mapping[str, float] = {}


class UsageStore:
    """The counts of this process and of others that share the file at ``path``. Everything runs on one event
    loop.

    clock: Unix seconds. warn: called with a problem of the file, once.
    """

    def __init__(
        self,
        path: str,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.time,
        shared: "SharedUsage | None" = None,
        *,
        words: bool = True,
    ) -> None:
        """shared: what machines tell each other; None without a store. words: whether the words of searches
        are learned; if not, those in the file are removed with the next call.
        """
        self.learns_words = words
        self._path, self._warn, self._clock, self._shared = path, warn, clock, shared
        self._untold: UseCounts = {}
        self._heard_at, self._told_in = -math.inf, STORE_TIME
        self._saved: UseCounts | None = None  # the file when it was last read or written
        self._earlier: dict[str, UseCount] = {}  # since then
        self._calls: dict[str, int] = {}  # the newest of these, by tool
        self._words: dict[str, dict[str, float]] = {}  # of the newest
        self._called_at = -math.inf  # the first of the newest
        self._being_saved: dict[str, UseCount] = {}
        self._saving = DelayedSave(self._save, "keep usage")
        self._broken = False
        self.revision = 0
        """Changes whenever the counts change by more than decay."""

    def record(self, name: str, words: Mapping[str, float] = _NO_WORDS) -> None:
        """Counts a successful call of the tool called ``name``. words: the terms of searches that led to it,
        and how much each counts.
        """
        if self._broken:
            return
        if (now := self._clock()) - self._called_at > _ONE_TIME:
            self._earlier, self._calls, self._words, self._called_at = self._unsaved(), {}, {}, now
        self._calls[name] = self._calls.get(name, 0) + 1
        for word, count in words.items() if self.learns_words else ():
            of_tool = self._words.setdefault(name, {})
            of_tool[word] = of_tool.get(word, 0.0) + count
        self.revision += 1
        self._saving.want(SAVE_AFTER)

    def counts(self) -> dict[str, float]:
        """The counts of all tools now; see the function `counts`."""
        return counts(self._uses(), self._clock())

    def learned(self) -> "LearnedWords | None":
        """The words that led to tools; None for none."""
        return learned_words(self._uses(), self._clock()) if self.learns_words else None

    def _uses(self) -> UseCounts:
        if self._saved is None:
            self._saved = self._load()
        return added(added(self._saved, self._being_saved), self._unsaved())

    def look(self) -> None:
        """Hears now and then what others have counted. It returns at once."""
        if self._shared is not None and not self._broken and self._clock() - self._heard_at > HEAR_AFTER:
            self._heard_at = self._clock()
            self._saving.want(0.0)

    def _unsaved(self) -> dict[str, UseCount]:
        newest = {
            name: UseCount(float(calls), self._called_at, dict(self._words.get(name, {})))
            for name, calls in self._calls.items()
        }
        return added(self._earlier, newest)

    async def close(self) -> None:
        """Saves what is unsaved."""
        self._told_in = _CLOSING
        await self._saving.flush()
        if self._shared is not None:
            await in_thread(self._shared.close, "usage")

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
        self._being_saved, self._earlier, self._calls, self._words = unsaved, {}, {}, {}
        if self._saved is None:
            self._saved = self._load()
        before = self._saved
        try:
            if not self._broken:
                self._saved = await in_thread(lambda: self._add(unsaved, now), "keep usage")
        except (OSError, UnusableUsageFileError) as error:
            self._give_up(error)
        self._being_saved = {}
        if unsaved or self._saved != before:
            self.revision += 1

    def _add(self, unsaved: UseCounts, now: float) -> UseCounts:
        kept, _ = load(self._path)
        if not self.learns_words:
            kept = {name: use.without_words() for name, use in kept.items()}
        if self._shared is None:
            return save(self._path, added(kept, unsaved), now)
        before = marks_of(self._path)
        marks = before if before.origin else Marks(secrets.token_hex(8))
        heard, marks = self._exchanged(self._shared, marks, unsaved, now)
        if not unsaved and not heard and marks == before:
            return kept
        return save(self._path, added(added(kept, unsaved), heard), now, marks)

    def _exchanged(
        self, shared: "SharedUsage", marks: Marks, unsaved: UseCounts, now: float
    ) -> tuple[UseCounts, Marks]:
        """What others have counted, as far as the store can be used; and the marks from then on."""
        self._untold = added(self._untold, unsaved)
        try:
            shared.tell(marks.origin, self._untold, self._told_in)
            self._untold = {}
            heard, seen = shared.hear(marks.origin, marks.seen, now, self._told_in)
        except OSError:  # a TimeoutError is one, too; what is untold waits
            self._untold = {name: self._untold[name] for name in counts(self._untold, now)}
            return {}, marks
        return heard, marks._replace(seen=seen)
