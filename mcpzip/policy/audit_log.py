"""Writes the audit log: one line a call.

The rules: a call is only queued; a thread writes it. Nothing that goes wrong there delays or fails a call:
what can't be written is counted, the next line has the count, and it is said once.
"""

import json
import os
from collections.abc import Callable

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.model.limits import REPAIRED
from mcpzip.model.principal import Principal
from mcpzip.model.redaction import redact
from mcpzip.policy.audit_destination import Destination, Make
from mcpzip.policy.audit_files import AuditLine, encoded, hash_of
from mcpzip.policy.decision import Verdict
from mcpzip.policy.hashes import arguments_hash, definition_hash
from mcpzip.system.write_queue import WriteQueue
from mcpzip.wire import NotAnObject, split_object

WAITING = 5_000
"""Calls that may wait to be written. More are counted only."""
AGAIN = 1.0
"""Seconds until what waits is tried again."""
NAMES, NAME_LENGTH = 100, 100
"""Names of arguments in a line, and characters of one."""
VALUES = 16_384
"""Bytes of arguments whose values are written, if the config asks for that. Longer ones have a hash only."""
AT_ONCE = 500
"""Calls in one write."""
CLOSING = 1.0
"""Seconds that the last lines have to be written."""


class AuditedCall(msgspec.Struct, frozen=True):
    """A call that has ended. at: when, Unix seconds. seconds: how long it took. info: the client's
    `Implementation`, JSON text. client_pid, client: its process, 0 if that isn't known, and its number here.
    principal: who made it, None for whoever uses this machine.
    findings: the checks that find something in what its server said; it is called in the thread that writes.
    """

    at: float
    seconds: float
    entry: Entry
    arguments: bytes
    verdict: Verdict
    approved_by: str
    outcome: str
    info: bytes
    client_pid: int
    client: int
    principal: Principal | None = None
    findings: Callable[[], tuple[str, ...]] = tuple


class AuditLog:
    """The audit log at a destination. Thread-safe."""

    def __init__(self, destination: Destination, *, values: bool, warn: Callable[[str], None]) -> None:
        """values: whether the values of arguments are written. warn: called in another thread when calls
        can't be written: once, or if they wait, once until they are written.
        """
        self._destination, self._values, self._warn = destination, values, warn
        self._queue: WriteQueue[AuditedCall] = WriteQueue(
            "audit", WAITING, self._write_some, destination.close
        )
        self._warned = False

    def add(self, call: AuditedCall) -> None:
        """Has ``call`` written. Never waits, never raises."""
        self._queue.put(call)

    def close(self, timeout: float = CLOSING) -> None:
        """Writes what is queued, for ``timeout`` seconds at most."""
        self._queue.close(timeout)

    # --- in the thread

    def _write_some(self) -> None:
        waiting, lost = self._queue.items, self._queue.lost
        calls = [waiting.popleft() for _ in range(min(len(waiting), AT_ONCE))]

        def make(n: int, previous: str) -> tuple[list[bytes], int, str]:
            return _lines(calls, n, previous, lost, values=self._values)

        while not self._has_appended(make):
            if not self._destination.waits or self._queue.pause(AGAIN):
                self._queue.count_lost(len(calls))
                return
        self._queue.count_lost(-lost)

    def _has_appended(self, make: Make) -> bool:
        try:
            self._destination.append(make)
        except Exception as error:  # whatever it is: later calls are written again
            self._say(error)
            return False
        self._warned = self._warned and not self._destination.waits
        return True

    def _say(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            reason, waits = getattr(error, "strerror", None) or error, self._destination.waits
            go_on = f"Up to {WAITING:,} calls wait for it, and go on." if waits else "Calls go on without it."
            self._warn(f"{self._destination.place}: the audit log can't be written ({reason}). {go_on}")


def _lines(
    calls: list[AuditedCall], n: int, previous: str, lost: int, *, values: bool
) -> tuple[list[bytes], int, str]:
    """See `audit_destination.Make`."""
    lines = []
    for call in calls:
        n += 1
        lines.append(encoded(_line(call, n, previous, lost, values=values)))
        previous, lost = hash_of(lines[-1]), 0
    return lines, n, previous


def _values(arguments: bytes) -> object:
    """The values of ``arguments``, without the secrets of the config; None if they can't be read."""
    try:
        return json.loads(redact(arguments.decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError):
        return None


def _line(call: AuditedCall, n: int, previous: str, lost: int, *, values: bool) -> AuditLine:
    entry, verdict = call.entry, call.verdict
    client: dict[str, object] = {"number": call.client}
    if call.client_pid:
        client["pid"] = call.client_pid
    try:
        said = json.loads(call.info or b"{}")
        client |= {key: said[key][:200] for key in ("name", "version") if isinstance(said.get(key), str)}
    except (ValueError, AttributeError, RecursionError):
        pass  # it has no name
    try:
        names = tuple(name[:NAME_LENGTH] for name in list(split_object(call.arguments))[:NAMES])
    except (NotAnObject, ValueError, RecursionError):
        names = ()
    whole = _values(call.arguments) if values and len(call.arguments) <= VALUES else None
    # Longer arguments are hashed as they are: to sort them would take long.
    hashed = arguments_hash(call.arguments) if len(call.arguments) <= REPAIRED else hash_of(call.arguments)
    return AuditLine(
        n,
        previous,
        round(call.at, 3),
        os.getpid(),
        client,
        entry.server,
        entry.tool,
        verdict.risk.classes,
        verdict.decision,
        call.outcome,
        round(call.seconds * 1000, 3),
        definition_hash(entry),
        names,
        hashed,
        verdict.rule,
        call.approved_by,
        whole,
        lost,
        call.findings(),
        _person(call.principal),
    )


def _person(principal: Principal | None) -> dict[str, str]:
    if principal is None:
        return {}
    return {"issuer": principal.issuer, "subject": principal.subject, "name": principal.name}
