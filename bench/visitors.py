"""Clients that come and go: each calls the tools of `bench/noting.py` through a `mcpzip serve`, cancels some
calls, and leaves or is killed. What became of each call is kept, by the number that it carries.
"""

import itertools
import json
import os
import random
import re
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from bench.client import Client, RefusedError

PATIENCE = 60.0
"""Seconds in which an answer has to come, whatever happens meanwhile."""

Outcome = Literal["right", "may have run", "not run", "cancelled", "client killed"]
"""What became of a call. not run: it was answered with an error that doesn't say that it may have run."""


class Tally:
    """What became of all calls. calls: by their numbers. errors: the texts of errors, digits removed. wrong:
    what must not happen.
    """

    def __init__(self) -> None:
        self.calls: dict[int, Outcome] = {}
        self.said: dict[int, str] = {}
        self.errors: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def number(self) -> int:
        """A new number."""
        return next(self._numbers)

    def add(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def settle(self, number: int, outcome: Outcome, said: str = "") -> None:
        """A call has ended. said: the text of its error."""
        with self._lock:
            self.calls[number] = outcome
            if said:
                self.said[number] = said
                self.errors[re.sub(r"\d+", "N", said)] += 1

    def amiss(self, what: str) -> None:
        with self._lock:
            self.wrong.append(what)

    def check(self, notes: Counter[int]) -> None:
        """Compares what clients were told with what servers noted: how often each number was run."""
        for number, times in notes.items():
            if times > 1:
                self.wrong.append(f"call {number} ran {times} times ({self.calls.get(number)})")
        for number, outcome in self.calls.items():
            if outcome == "right" and not notes[number]:
                self.wrong.append(f"call {number} was answered and never ran")
            if outcome == "not run" and notes[number]:
                self.wrong.append(f"call {number} ran, and its client was told: {self.said[number]}")


class _Talk(Client):
    """A client whose patience is limited, and which knows its open calls."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], tally: Tally) -> None:
        super().__init__(argv, env)
        self._tally = tally
        self._poll = select.poll()
        self._poll.register(self.output, select.POLLIN)
        self._open: dict[int, int] = {}
        self._cancelled: dict[int, int] = {}

    def line(self) -> bytes:
        if not self._lines and not self._poll.poll(PATIENCE * 1000):
            raise RefusedError(f"no answer in {PATIENCE:g} s to calls {sorted(self._open.values())}")
        return super().line()

    def send_call(self, tool: str, ms: int) -> int:
        """Sends a call with a new number. Returns its id."""
        number = self._tally.number()
        arguments = {"name": tool, "arguments": {"number": number, "ms": ms}}
        frame = self.frame("tools/call", {"name": "execute_tool", "arguments": arguments})
        self._open[self.number] = number
        self.write(frame)
        return self.number

    def cancel(self, id: int) -> None:
        params = {"requestId": id, "reason": "changed my mind"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self.write(json.dumps(message).encode() + b"\n")
        number = self._cancelled[id] = self._open.pop(id)
        self._tally.settle(number, "cancelled")

    def wait(self) -> None:
        """Until every call that was not cancelled is answered, and a `ping` after them."""
        self.write(self.frame("ping", {}))
        ping, pinged = self.number, False
        while self._open or not pinged:
            message = json.loads(self.line())
            id = message.get("id")
            if "method" in message:
                continue
            if id == ping and message.get("result") == {} and not pinged:
                pinged = True
            elif id in self._open:
                self._answered(self._open.pop(id), message)
            elif id in self._cancelled:  # the answer was faster
                self._answered(self._cancelled.pop(id), message)
            else:
                self._tally.amiss(f"nobody waits for {str(message)[:200]}")

    def _answered(self, number: int, message: dict[str, object]) -> None:
        result = message.get("result")
        if isinstance(result, dict) and not result.get("isError"):
            text = str(result.get("content"))
            if f"'text': '{number}'" in text:
                self._tally.settle(number, "right")
            else:
                self._tally.amiss(f"call {number} was answered with {text[:200]}")
            return
        said = str(result if result is not None else message.get("error"))
        self._tally.settle(number, "may have run" if "may have run" in said else "not run", said[:300])

    def give_up(self) -> None:
        """Ends by SIGKILL, in the middle of its calls."""
        os.kill(self.pid, signal.SIGKILL)
        for number in self._open.values():
            self._tally.settle(number, "client killed")
        self._open.clear()


class Visitor(threading.Thread):
    """Clients one after the other, until ``over`` is set."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], tools: Sequence[str], tally: Tally, seed: int
    ) -> None:
        super().__init__(name=f"visitor {seed}")
        self.over = threading.Event()
        self._argv, self._env, self._tools, self._tally = argv, env, tools, tally
        self._random = random.Random(seed)

    def run(self) -> None:
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                self._live()
            except Exception as error:
                lived = time.monotonic() - begun
                self._tally.amiss(f"{self.name}: {type(error).__name__} after {lived:.1f} s: {error}")
                self.over.wait(1)

    def _live(self) -> None:
        chance = self._random.random
        with _Talk(self._argv, self._env, self._tally) as talk:
            self._tally.add("clients")
            talk.initialize({"roots": {}} if chance() < 0.3 else None)
            leave = time.monotonic() + (40 if chance() < 0.1 else self._random.uniform(0.5, 12))
            while time.monotonic() < leave and not self.over.wait(self._random.uniform(0, 1.2)):
                self._call(talk)
            if chance() < 0.1:
                talk.send_call(self._random.choice(self._tools), 50)
                self.over.wait(self._random.uniform(0, 0.05))
                talk.give_up()
                self._tally.add("clients killed")
                return
            if chance() < 0.2:
                os.kill(talk.pid, signal.SIGTERM)
        if talk.exit_code != 0:
            self._tally.amiss(f"mcpzip serve ended with {talk.exit_code}")

    def _call(self, talk: _Talk) -> None:
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            ms = self._random.choice((0, 0, 0, 20, 200))
            id = talk.send_call(self._random.choice(self._tools), ms)
            if self._random.random() < 0.1:
                self.over.wait(self._random.uniform(0, 0.03))
                talk.cancel(id)
        talk.wait()
        if self._random.random() < 0.1:
            found = talk.call({"name": "search_tools", "arguments": {"query": "note a number"}})
            if self._tools[0] not in str(found):
                self._tally.amiss(f"a search found {str(found)[:300]}")
            self._tally.add("searches")
