"""What this machine has seen last of values in the store, so that earlier ones are recognized.

The rules: it is a file in the cache folder, one for each config and use. A file that can't be used or written
protects from nothing, and stops nothing: what it protects from needs somebody who can write to the store.

    {"format":"mcpzip-seen","version":1,"store":"…","values":{"9f86d0…":{"counter":1764039600000000,"mark":"…"}}}
"""

import hashlib
import os

import msgspec

from mcpzip.model import limits
from mcpzip.system.files import make_folders
from mcpzip.system.formats import Format, Head, UnusableError
from mcpzip.system.locks import locked_blocking
from mcpzip.system.state_files import read_state, write_state

FORMAT = Format("mcpzip-seen", 1, "a list of what was seen in a store")
_LOCK_TIMEOUT = 1.0
"""Seconds to wait for another process that writes."""


class Seen(msgspec.Struct, frozen=True):
    """Of one value: the highest counter, and the `Sealed.mark` of the value with it."""

    counter: int
    mark: str


class _File(Head):
    store: str
    values: dict[str, Seen]


class SeenCounters:
    """The values of one table of one store. Not thread-safe."""

    def __init__(self, path: str, place: str, namespace: str) -> None:
        """path: of the file. place: of the store; what was seen in another one doesn't count."""
        self._path = path
        self._store = hashlib.sha256(f"{place} {namespace}".encode("utf-8", "surrogatepass")).hexdigest()
        self._values: dict[str, Seen] | None = None

    def get(self, name: str) -> Seen | None:
        """What was seen of the value called ``name``; None for nothing."""
        return self._known().get(name)

    def problem(self, name: str, counter: int, mark: str) -> str:
        """Why the value called ``name``, which the store has now, isn't the one that was seen last or a later
        one: the rest of a sentence about it; "" if it is.
        """
        seen = self._known().get(name)
        if seen is None or counter > seen.counter:
            return ""
        if counter < seen.counter:
            return "is an earlier one than was seen here"
        return "" if mark == seen.mark else "is another one than was seen here"

    def note(self, name: str, counter: int, mark: str) -> None:
        """Remembers the value, unless a later one was seen."""
        seen = self._known().get(name)
        if seen is not None and seen.counter >= counter:
            return
        self._known()[name] = Seen(counter, mark)
        try:
            make_folders(os.path.dirname(self._path))
            with locked_blocking(f"{self._path}.lock", _LOCK_TIMEOUT):
                # What other processes have seen since is not ours: it may be later than what we are reading.
                values = {**self._known()}
                for other, found in self._read().items():
                    if other not in values or values[other].counter < found.counter:
                        values[other] = found
                data = msgspec.json.encode(_File(FORMAT.name, FORMAT.version, self._store, values))
                write_state(self._path, data, limits.SEEN, durable=False)
        except OSError:
            pass  # TimeoutError is one too

    def _known(self) -> dict[str, Seen]:
        if self._values is None:
            self._values = self._read()
        return self._values

    def _read(self) -> dict[str, Seen]:
        try:
            found = FORMAT.decode(read_state(self._path, limits.SEEN), _File)
        except (OSError, UnusableError):
            return {}
        return found.values if found.store == self._store else {}
