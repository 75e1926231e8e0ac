"""What a person has allowed with `mcpzip allow`: in a file beside the config, or in the store of the config.

The rules:

1. An allowance ends: it has a time, and it is for one definition of the tool. If the server changes the
   tool, a person is asked again.
2. A file or a store that can't be used allows nothing, and the error says what to do.
3. It is read at each call that it may concern, so it counts at once, in every process.
4. One for a single call is removed before that call runs, under a lock, or in the store if nobody else has
   changed the list since it was read: of two processes one gets it.

    {"format":"mcpzip-allowed","version":1,"allowed":[{"name":"github__merge_pull_request",
     "until":1764043200.0,"at":1764039600.0,"definition":"9f86d0…","arguments":""}]}
"""

import os
from abc import ABC, abstractmethod

import msgspec

from mcpzip.config.paths import allowed_path
from mcpzip.model import limits
from mcpzip.model.errors import McpzipError
from mcpzip.system.files import make_folders
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.locks import locked_blocking
from mcpzip.system.state_files import read_state, write_state

FORMAT = Format("mcpzip-allowed", 1, "a list of allowed calls")
LONGEST = 30 * 86_400.0
"""Seconds that an allowance may last."""
_REMEDY = "Until you delete it, nothing counts as allowed."
_LOCK_TIMEOUT = 10.0
"""Seconds to wait for another command that changes the file."""


class Allowance(msgspec.Struct, frozen=True):
    """name: of the tool, with its server. until, at: when it ends and when it was given, Unix seconds.
    definition: the hash of the tool's definition. arguments: the hash of the arguments; "" for any. once:
    whether it is for one call only.
    """

    name: str
    until: float
    at: float
    definition: str
    arguments: str = ""
    once: bool = False


class AllowedError(McpzipError):
    """The list of allowed calls can't be used or changed."""


class AllowedList(Head):
    """What is stored."""

    allowed: list[Allowance]

    @classmethod
    def of(cls, allowed: list[Allowance]) -> bytes:
        """The list as JSON text."""
        return msgspec.json.encode(cls(FORMAT.name, FORMAT.version, allowed))


class Allowances(ABC):
    """The list. Everything raises AllowedError, and may block: it is for threads. Close it, or use it as a
    context.
    """

    @abstractmethod
    def all(self, now: float) -> list[Allowance]:
        """The allowances that haven't ended at the time ``now``, the oldest first."""

    @abstractmethod
    def clear(self) -> None:
        """Begins a new list, whatever the list is now."""

    @abstractmethod
    def _change(self, now: float, change: "Change") -> None:
        """Stores what ``change``, which may be called several times, makes of `all`."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Ends what is open. It may block for a few seconds."""

    def __enter__(self) -> "Allowances":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def allow(self, allowance: Allowance) -> None:
        """Adds ``allowance``, in place of an earlier one for the same calls."""

        def added(found: list[Allowance]) -> list[Allowance]:
            same = (allowance.name, allowance.arguments, allowance.once)
            others = [each for each in found if (each.name, each.arguments, each.once) != same]
            return [*others, allowance][-limits.ALLOWED_CALLS :]

        self._change(allowance.at, added)

    def use(self, name: str, definition: str, arguments: str, now: float) -> bool:
        """Whether a call of the tool called ``name`` is allowed; if for once, it isn't any more. definition,
        arguments: their hashes.
        """

        def fits(one: Allowance) -> bool:
            return (one.name, one.definition) == (name, definition) and one.arguments in ("", arguments)

        found = [each for each in self.all(now) if fits(each)]
        if not found or not all(each.once for each in found):
            return bool(found)
        taken = False

        def without(now_there: list[Allowance]) -> list[Allowance]:
            nonlocal taken
            taken = found[0] in now_there
            return [each for each in now_there if each != found[0]]

        self._change(now, without)
        return taken

    def revoke(self, name: str, now: float) -> int:
        """Removes the allowances of the tool called ``name``. Returns their number."""
        removed = 0

        def without(found: list[Allowance]) -> list[Allowance]:
            nonlocal removed
            kept = [each for each in found if each.name != name]
            removed = len(found) - len(kept)
            return kept

        self._change(now, without)
        return removed


class AllowedFile(Allowances):
    """The list of the config at ``config_path``, in its file."""

    def __init__(self, config_path: str) -> None:
        self._path = allowed_path(config_path)

    def all(self, now: float) -> list[Allowance]:
        path = self._path
        try:
            found = FORMAT.decode(read_state(path, limits.ALLOWED), AllowedList).allowed
        except (FileNotFoundError, NotADirectoryError):
            return []
        except UnusableError as error:
            raise AllowedError(f"{path} {error}. {_REMEDY}") from None
        except OSError as error:
            raise AllowedError(f"{path} can't be used: {error.strerror or error}. {_REMEDY}") from error
        return valid(found, now)

    def clear(self) -> None:
        self._write(list)

    def _change(self, now: float, change: "Change") -> None:
        def changed() -> list[Allowance] | None:
            found = self.all(now)
            made = change(found)
            return made if made != found or os.path.lexists(self._path) else None

        self._write(changed)

    def _write(self, make: "Callable[[], list[Allowance] | None]") -> None:
        path = self._path
        try:
            make_folders(os.path.dirname(path))
            with locked_blocking(f"{path}.lock", _LOCK_TIMEOUT):
                if (made := make()) is not None:
                    write_state(path, AllowedList.of(made), limits.ALLOWED)
        except OSError as error:
            raise AllowedError(
                f"{path} can't be written: {getattr(error, 'strerror', None) or error}."
            ) from error


def valid(found: list[Allowance], now: float) -> list[Allowance]:
    """Those that count at the time ``now``."""
    # One from the future was given before the clock was set back, or was not written by mcpzip.
    return [each for each in found if each.at - 60 <= now < each.until <= each.at + LONGEST]


TYPE_CHECKING = False  # as in `typing`, without importing `typing`
if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[list[Allowance]], list[Allowance]]
