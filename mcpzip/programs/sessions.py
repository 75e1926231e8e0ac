"""What is kept of programs between requests: the variables of each client, and programs that are paused.

The rules:

1. Variables belong to a client with a session. A client of a single request (modern HTTP) can't be told from
   others, so each of its programs begins anew.
2. A paused program goes on once. Its id can't be guessed, and it belongs to the client whose it is.
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
    of tools that are defined there. unsaid: what the next reply has to say of a program that ended without a
    reply, "" for nothing.
    """

    state: bytes = b""
    names: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    unsaid: str = ""
    used: float = 0.0


class _Waiting(msgspec.Struct, Generic[PausedProgram]):
    owner: Hashable
    program: PausedProgram
    since: float


class Sessions(Generic[PausedProgram]):
    """Those of all clients. Everything runs on one event loop."""

    def __init__(self) -> None:
        self._variables: OrderedDict[Hashable, Variables] = OrderedDict()
        self._waiting: OrderedDict[str, _Waiting[PausedProgram]] = OrderedDict()
        self._number = 0

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
        found.state, found.names, found.tools = state, names, tools
        total = sum(len(each.state) for each in self._variables.values())
        while total > limits.PROGRAM_STATES:
            _, oldest = self._variables.popitem(last=False)
            total -= len(oldest.state)

    def pause(self, owner: Hashable, program: PausedProgram) -> str:
        """Keeps ``program`` until somebody goes on with it. Returns its id."""
        self.remove_old()
        self._number += 1
        name = f"p{self._number}-{b32encode(os.urandom(10)).decode().lower()}"
        self._waiting[name] = _Waiting(owner, program, time.monotonic())
        own = [each for each, waiting in self._waiting.items() if waiting.owner is owner]
        if owner is not None and len(own) > limits.PROGRAMS_OF_CLIENT:
            del self._waiting[own[0]]
        if len(self._waiting) > limits.PROGRAMS_PAUSED:
            self._waiting.popitem(last=False)
        return name

    def paused(self, owner: Hashable, name: str) -> PausedProgram | None:
        """The paused program ``name``, which stays; None if there is none of ``owner``."""
        self.remove_old()
        found = self._waiting.get(name)
        return found.program if found is not None and found.owner is owner else None

    def take(self, owner: Hashable, name: str) -> PausedProgram | None:
        """The same, and nobody else gets it any more."""
        if (found := self.paused(owner, name)) is not None:
            del self._waiting[name]
        return found

    def put_back(self, owner: Hashable, name: str, program: PausedProgram) -> None:
        """What was taken, because nothing came of it."""
        self._waiting[name] = _Waiting(owner, program, time.monotonic())

    def remove_owner(self, owner: Hashable) -> None:
        """``owner`` is gone."""
        self._variables.pop(owner, None)
        for name in [name for name, waiting in self._waiting.items() if waiting.owner is owner]:
            del self._waiting[name]

    def remove_old(self) -> None:
        """Forgets what was not used for `limits.KEPT_SECONDS`."""
        oldest = time.monotonic() - limits.KEPT_SECONDS
        while self._variables and next(iter(self._variables.values())).used < oldest:
            self._variables.popitem(last=False)
        while self._waiting and next(iter(self._waiting.values())).since < oldest:
            self._waiting.popitem(last=False)
