"""What is kept of programs between requests: the variables of each client, and programs that are paused.

The rules:

1. Variables belong to a client with a session. Each program of a client of a single request (modern HTTP)
   begins anew: several agents may be behind it.
2. A paused program goes on once. Its id can't be guessed, and it belongs to the client whose it is, or if
   that makes a single request only, to whoever is behind it.
3. What isn't used for `limits.KEPT_SECONDS` is forgotten.
"""

import os
import time
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from mcpzip.model import limits

PausedProgram = TypeVar("PausedProgram")


class Variables(msgspec.Struct):
    """The variables of a client. state: the sandbox's own form. names: what they are called. tools: the names
    of tools that are defined there. version: another one after each program. unsaid: what the next reply has
    to say of a program that ended without a reply, "" for nothing.
    """

    state: bytes = b""
    names: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    version: int = 0
    unsaid: str = ""
    used: float = 0.0


class _Waiting(msgspec.Struct, Generic[PausedProgram]):
    owner: Hashable
    program: PausedProgram
    size: int
    since: float


class Sessions(Generic[PausedProgram]):
    """Those of all clients. Everything runs on one event loop."""

    def __init__(self) -> None:
        self._variables: OrderedDict[Hashable, Variables] = OrderedDict()
        self._waiting: OrderedDict[str, _Waiting[PausedProgram]] = OrderedDict()
        self._number = self._paused = 0

    def __len__(self) -> int:
        return len(self._variables) + len(self._waiting)

    def variables(self, owner: Hashable) -> Variables:
        """Those of ``owner``; empty ones, which nobody keeps, for None."""
        self.remove_old()
        if owner is None:
            return Variables()
        found = self._variables.setdefault(owner, Variables())
        found.used = time.monotonic()
        self._variables.move_to_end(owner)
        return found

    def store(self, owner: Hashable, state: bytes, names: frozenset[str], tools: frozenset[str]) -> None:
        """Keeps the variables of ``owner``. If all are too large, those used longest ago are forgotten."""
        if owner is None:
            return
        found = self.variables(owner)
        self._number += 1
        found.state, found.names, found.tools, found.version = state, names, tools, self._number
        total = sum(len(each.state) for each in self._variables.values())
        while total > limits.PROGRAM_STATES:
            _, oldest = self._variables.popitem(last=False)
            total -= len(oldest.state)

    def pause(self, owner: Hashable, program: PausedProgram, size: int, suffix: str = "") -> str:
        """Keeps ``program`` until somebody goes on with it. size: its bytes. suffix: the part of its id that
        nobody can guess; "" for a random one. Returns its id.
        """
        self.remove_old()
        self._paused += 1
        name = f"p{self._paused}-{suffix or b32encode(os.urandom(10)).decode().lower()}"
        self._waiting[name] = _Waiting(owner, program, size, time.monotonic())
        if owner is not None:
            own = [each for each, waiting in self._waiting.items() if waiting.owner == owner]
            self._end_first(own, limits.PROGRAMS_OF_CLIENT, limits.PROGRAMS_OF_CLIENT_SIZE)
        self._end_first(list(self._waiting), limits.PROGRAMS_PAUSED, limits.PROGRAMS_PAUSED_SIZE)
        return name

    def _end_first(self, names: list[str], number: int, size: int) -> None:
        """Ends the first of these paused programs, but not the last, until these are so many and so large at
        most.
        """
        total = sum(self._waiting[name].size for name in names)
        for place, name in enumerate(names[:-1]):
            if len(names) - place <= number and total <= size:
                break
            total -= self._waiting.pop(name).size

    def paused(self, owner: Hashable, name: str) -> PausedProgram | None:
        """The paused program ``name``, which stays; None if there is none of ``owner``."""
        self.remove_old()
        found = self._waiting.get(name)
        return found.program if found is not None and found.owner == owner else None

    def take(self, owner: Hashable, name: str) -> PausedProgram | None:
        """The same, and nobody else gets it any more."""
        if (found := self.paused(owner, name)) is not None:
            del self._waiting[name]
        return found

    def remove_owner(self, owner: Hashable) -> None:
        """``owner`` is gone."""
        self._variables.pop(owner, None)
        for name in [name for name, waiting in self._waiting.items() if waiting.owner == owner]:
            del self._waiting[name]

    def remove_old(self) -> None:
        """Forgets what was not used for `limits.KEPT_SECONDS`."""
        oldest = time.monotonic() - limits.KEPT_SECONDS
        while self._variables and next(iter(self._variables.values())).used < oldest:
            self._variables.popitem(last=False)
        while self._waiting and next(iter(self._waiting.values())).since < oldest:
            self._waiting.popitem(last=False)
