"""Writes the audit log: one line a call.

The rules: a call is only queued; a thread writes it. Nothing that goes wrong with the disk delays or fails a
call: what can't be written is counted, the next line has the count, and it is said once. Several processes
write the same files, one at a time, by a lock.
"""

import json
import os
from collections.abc import Callable

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.model.limits import REPAIRED
from mcpzip.model.principal import Principal
from mcpzip.model.redaction import redact
from mcpzip.policy.audit_files import (
    LONGEST_LINE,
    AuditLine,
    Head,
    decoded,
    encoded,
    files,
    full_file,
    hash_of,
    read_head,
)
from mcpzip.policy.decision import Verdict
from mcpzip.policy.hashes import arguments_hash, definition_hash
from mcpzip.system.files import make_folders
from mcpzip.system.locks import locked_blocking
from mcpzip.system.private_files import private_folder
from mcpzip.system.state_files import write_gitignore
from mcpzip.system.write_queue import WriteQueue
from mcpzip.wire import NotAnObject, split_object

FILE_SIZE = 8 << 20
"""Bytes after which the next file begins."""
FULL_FILES = 15
"""Full files that are kept. The oldest is removed."""
WAITING = 5_000
"""Calls that may wait for the disk. More are counted only."""
NAMES, NAME_LENGTH = 100, 100
"""Names of arguments in a line, and characters of one."""
VALUES = 16_384
"""Bytes of arguments whose values are written, if the config asks for that. Longer ones have a hash only."""
AT_ONCE = 500
"""Calls in one write."""
LOCK_TIMEOUT = 5.0
"""Seconds to wait for another process that writes."""
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
    """The audit log at ``path``. Thread-safe."""

    def __init__(self, path: str, *, is_ours: bool, values: bool, warn: Callable[[str], None]) -> None:
        """is_ours: whether its folder is one of mcpzip's own. values: whether the values of arguments are
        written. warn: called once, in another thread, if nothing can be written.
        """
        self._path, self._is_ours, self._values, self._warn = path, is_ours, values, warn
        self._queue: WriteQueue[AuditedCall] = WriteQueue("audit", WAITING, self._write_some)
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
        try:
            self._write(calls, lost)
            self._queue.count_lost(-lost)
        except Exception as error:  # whatever it is: later calls are written again
            self._queue.count_lost(len(calls))
            self._say(error)

    def _say(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            reason = getattr(error, "strerror", None) or error
            self._warn(f"{self._path}: the audit log can't be written ({reason}). Calls go on without it.")

    def _write(self, calls: list[AuditedCall], lost: int) -> None:
        """Appends ``calls``: all of them or none. Raises OSError."""
        folder = os.path.dirname(self._path)
        if self._is_ours:
            private_folder(folder, make=True)
            write_gitignore(folder)
        else:
            make_folders(folder)
        with locked_blocking(f"{self._path}.lock", LOCK_TIMEOUT):
            handle = _open(self._path)
            try:
                head = self._head(handle)
                data, n, previous = _lines(calls, head, lost, values=self._values)
                if head.size and head.size + len(data) > FILE_SIZE:
                    os.close(handle)
                    handle = self._next_file(head)
                _append(handle, data, head.size)
                self._write_head(Head(n, previous, head.first, head.begins, head.size + len(data)))
            finally:
                os.close(handle)

    def _head(self, handle: int) -> Head:
        """Where the log stands: as ``.head`` says, or if that doesn't fit to the file, as the file says."""
        size = os.fstat(handle).st_size
        head = read_head(self._path)
        if head is not None and head.size == size:
            return head
        found = head or Head()
        os.lseek(handle, max(0, size - LONGEST_LINE), os.SEEK_SET)
        end = os.read(handle, LONGEST_LINE)
        if end and not end.endswith(b"\n"):  # a process was killed while it wrote
            _append(handle, b"\n", size)
            size += 1
        for text in reversed(end.splitlines()):
            line = decoded(text)
            if line is not None:
                if line.n > found.n:  # a process was killed before it wrote the head
                    found = Head(line.n, hash_of(text), found.first, found.begins)
                break
        return Head(found.n, found.hash, found.first, found.begins if size else found.n + 1, size)

    def _next_file(self, head: Head) -> int:
        """Begins a new file, and removes the oldest of too many. Changes ``head``. Raises OSError."""
        os.replace(self._path, full_file(self._path, head.begins))
        head.begins, head.size = head.n + 1, 0
        full = [file for file in files(self._path) if file != self._path]
        for file in full[:-FULL_FILES]:
            os.unlink(file)
        head.first = int(full[-FULL_FILES:][0].rpartition(".")[2])
        return _open(self._path)

    def _write_head(self, head: Head) -> None:
        handle = os.open(f"{self._path}.head", os.O_WRONLY | os.O_CREAT | _FLAGS, 0o600)
        try:
            data = msgspec.json.encode(head)
            os.write(handle, data)
            os.ftruncate(handle, len(data))
        finally:
            os.close(handle)


_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)


def _append(handle: int, data: bytes, size: int) -> None:
    """Appends ``data`` to a file of ``size`` bytes: all of it or nothing. Raises OSError."""
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError:
        os.ftruncate(handle, size)
        raise


def _lines(calls: list[AuditedCall], head: Head, lost: int, *, values: bool) -> tuple[bytes, int, str]:
    """The lines of ``calls`` after the one that ``head`` names, and the number and hash of the last."""
    n, previous, lines = head.n, head.hash, []
    for call in calls:
        n += 1
        text = encoded(_line(call, n, previous, lost, values=values))
        previous, lost = hash_of(text), 0
        lines.append(text + b"\n")
    return b"".join(lines), n, previous


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
