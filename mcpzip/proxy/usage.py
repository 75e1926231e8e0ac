"""Which tools were called with success, and how lately: what search learns from.

The rules:

1. What is kept are names of tools, numbers and times, on this machine. Never what a call said or got.
2. A call counts one, and half as much with every `HALF_LIFE` that passes. What counts is a function of what
   is kept and the time, so that nothing needs to run for it.
3. Several processes keep one file: each adds what it counted to what stands there. There is no lock: of two
   that write within the same milliseconds the last wins, and the calls of a few seconds are lost.
4. Nothing in the file can stop us: a damaged one is learnt anew, one that can't be read or is of a later
   version is left alone, and either is told.

    {"format":"mcpzip-usage","version":1,"tools":{"slack__send_message":{"calls":2.5,"at":1763788000.0}}}
"""

import math
import os
import re
import time
from collections.abc import Callable, Collection, Mapping

import msgspec

from mcpzip.config import snapshot_path
from mcpzip.model import limits
from mcpzip.system.delayed_save import DelayedSave
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.state_files import read_state, write_state
from mcpzip.system.threads import in_thread
from mcpzip.wire import NotAnObject, split_object

FORMAT = Format("mcpzip-usage", 1, "a record of use")
HALF_LIFE = 14 * 86_400.0
"""Seconds."""
MOST = 2_000
"""Tools that are remembered, those that count most."""
SAVE_AFTER = 3.0
"""Seconds a call may be remembered in memory alone."""

_FORGOTTEN = 0.05  # what counts no more: two months after the only call

_LONG, _END = 65_536, 2_048
_FAILED = re.compile(rb'"isError"\s*:\s*true|"resultType"\s*:\s*"input_required"')


class Use(msgspec.Struct, frozen=True):
    """What the calls of a tool counted at a time. at: Unix seconds."""

    calls: float
    at: float

    def now(self, now: float) -> float:
        """What they count ``now``; as much as then, when the clock went back."""
        return self.calls * math.exp2(-max(0.0, now - self.at) / HALF_LIFE)

    def __add__(self, other: "Use") -> "Use":
        at = max(self.at, other.at)
        return Use(self.now(at) + other.now(at), at)


Uses = Mapping[str, Use]
"""By the name of the tool."""


class _File(Head):
    tools: dict[str, Use]


class LeftAlone(Exception):
    """The file is neither read nor replaced. The text says which, and why."""


def usage_path(config_path: str) -> str:
    """Where it is kept for this config: beside the snapshot, and under its name."""
    folder, name = os.path.split(snapshot_path(config_path))
    return os.path.join(folder, f"{name.removesuffix('tools.json')}usage.json")


def together(some: Uses, others: Uses) -> dict[str, Use]:
    """What both say."""
    return {
        **some,
        **{name: some[name] + use if name in some else use for name, use in others.items()},
    }


def counts(uses: Uses, now: float) -> dict[str, float]:
    """What the calls of each tool count ``now``, most first, ties by name; of `MOST` tools at most."""
    found = sorted((-count, name) for name, use in uses.items() if (count := use.now(now)) >= _FORGOTTEN)
    return {name: -count for count, name in found[:MOST]}


def succeeded(result: bytes) -> bool:
    """Whether a `CallToolResult` (JSON text) is one of a call that was done, and done with success.

    Of a long one only both ends are looked at, where servers say so: it is not to cost what the call did.
    """
    if len(result) > _LONG:
        return not (_FAILED.search(result[:_END]) or _FAILED.search(result[-_END:]))
    if b'"isError"' not in result and b'"input_required"' not in result:
        return True
    try:
        members = split_object(result)
    except NotAnObject:
        return False
    return members.get("isError") != b"true" and members.get("resultType") != b'"input_required"'


def load(path: str) -> tuple[dict[str, Use], tuple[str, ...]]:
    """What is kept at ``path``, and warnings. A file that isn't there is nothing, without a warning.

    Raises LeftAlone.
    """
    try:
        data = read_state(path, limits.USAGE)
    except (FileNotFoundError, NotADirectoryError):
        return {}, ()
    except OSError as error:
        raise LeftAlone(f"{path} can't be read: {error.strerror or error}") from error
    try:
        tools = FORMAT.decode(data, _File).tools
    except UnusableError as error:
        if error.later:
            raise LeftAlone(f"{path} {error}: it is left alone, and nothing is learnt") from None
        return {}, (f"{path} {error}: what tools were used is learnt anew.",)
    return {name: use for name, use in tools.items() if _is_sound(use)}, ()


def save(path: str, uses: Uses, now: float) -> dict[str, Use]:
    """Keep ``uses``, those that still count, at ``path``, for its owner only. Returns what is kept. Raises
    OSError.
    """
    kept = {name: uses[name] for name in counts(uses, now) if name.isprintable()}  # a lone surrogate is not
    tools = {name: Use(round(use.calls, 4), round(min(use.at, now))) for name, use in sorted(kept.items())}
    write_state(path, msgspec.json.encode(_File(FORMAT.name, FORMAT.version, tools)), limits.USAGE)
    return tools


def forget(path: str, names: Collection[str] | None, now: float) -> tuple[str, ...]:
    """Forget the tools called ``names``, or all. Returns which were remembered. Raises OSError, LeftAlone."""
    kept, _ = load(path)
    gone = tuple(sorted(kept if names is None else set(names) & kept.keys()))
    if names is None:
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
    elif gone:
        save(path, {name: use for name, use in kept.items() if name not in gone}, now)
    return gone


def _is_sound(use: Use) -> bool:
    return 0 < use.calls < 1e9 and abs(use.at) < 1e12


class Usage:
    """What this process and others count, kept at ``path``. Everything runs on one event loop.

    clock: Unix seconds. warn: is told what is wrong with keeping it, once.
    """

    def __init__(
        self, path: str, warn: Callable[[str], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._path, self._warn, self._clock = path, warn, clock
        self._kept: Uses | None = None  # as the file was when it was last seen
        self._fresh: dict[str, Use] = {}
        self._being_written: dict[str, Use] = {}
        self._saving = DelayedSave(self._save, "keep usage")
        self._broken = False
        self.revision = 0
        """Another number whenever more than time has changed what `counts` says."""

    def record(self, name: str) -> None:
        """The tool called ``name`` was called with success."""
        if self._broken:
            return
        one = Use(1.0, self._clock())
        before = self._fresh.get(name)
        self._fresh[name] = before + one if before else one
        self.revision += 1
        self._saving.want(SAVE_AFTER)

    def counts(self) -> dict[str, float]:
        """What the calls of each tool count now."""
        if self._kept is None:
            self._kept = self._load()
        uses = together(together(self._kept, self._being_written), self._fresh)
        return counts(uses, self._clock())

    async def close(self) -> None:
        """It is on disk afterwards."""
        await self._saving.flush()

    def _load(self) -> Uses:
        try:
            uses, warnings = load(self._path)
        except LeftAlone as error:
            self._give_up(error)
            return {}
        for warning in warnings:
            self._warn(warning)
        return uses

    def _give_up(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            self._warn(f"What tools are used is not learnt: {error}.")

    async def _save(self) -> None:
        self._being_written, self._fresh = self._fresh, {}
        fresh, now = self._being_written, self._clock()
        if self._kept is None:
            self._kept = self._load()
        try:
            if not self._broken:
                self._kept = await in_thread(lambda: self._add(fresh, now), "keep usage")
        except (OSError, LeftAlone) as error:
            self._give_up(error)
        self._being_written = {}
        self.revision += 1

    def _add(self, fresh: Uses, now: float) -> Uses:
        kept, _ = load(self._path)
        return save(self._path, together(kept, fresh), now)
