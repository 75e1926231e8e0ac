"""Writes what is recorded to a cassette, in a thread, so that what passes through waits for nothing.

The rule: a recorder changes nothing for the client and the server. If the cassette can't be written, that is
told once, and the conversation goes on unrecorded.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from mcpzip import __version__
from mcpzip.cassettes.cassette import Cassette, Exchange, Masked, Transport
from mcpzip.cassettes.files import CassetteError, CassetteWriter, load
from mcpzip.cassettes.masking import Masker
from mcpzip.cassettes.observer import masked_event, masked_headers, masked_response

_BEHIND = 256 << 20
"""Bytes that wait to be recorded. With more, what passes through waits too."""
_ITEM = 200
"""Bytes that an item takes beside its data."""
_Note = Callable[..., None]


class Tape:
    """Records into the cassette at ``path``. Thread-safe.

    writer: adds to it, and masker masks; both only for the functions that `note` is given. masked: the
    secrets that were masked.
    """

    def __init__(
        self,
        path: str,
        transport: Transport,
        secrets: Mapping[str, str],
        paths: Sequence[str],
        tell: Callable[[str], None],
        *,
        anew: bool = False,
    ) -> None:
        """secrets, paths: as in `Masker`. tell: gets a sentence if the cassette can't be written. anew:
        replace the cassette. Raises CassetteError if an existing one can't be added to.
        """
        present = None if anew or not os.path.exists(path) else load(path)
        if present is not None and present.transport != transport:
            found = f"it was recorded over {present.transport}, and this is {transport}"
            raise CassetteError(path, "", found, "choose another name, or replace it with --overwrite")
        self._path, self._transport, self._anew, self.tell = path, transport, anew, tell
        self.masked: list[Masked] = []
        known = () if present is None else present.masked
        self.masker = Masker(secrets, paths, self.masked.append, known=known)
        self._told = 0
        self._has_session = False
        self._failed = False
        self._items: deque[tuple[_Note, tuple[object, ...], float, int] | None] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._began = 0.0
        self._thread = threading.Thread(target=self._run, name="tape", daemon=True)

    def begin(self, *, command: Sequence[str] = (), url: str = "") -> None:
        """Begins a session. command, url: of the server. Raises CassetteError."""
        name = os.path.splitext(os.path.basename(self._path))[0]
        cassette = Cassette(
            name=name,
            transport=self._transport,
            command=self.masker.command(command, "the command"),
            url=self.masker.url(url, "the URL"),
            recorder=f"mcpzip {__version__}",
        )
        self.writer = CassetteWriter(self._path, cassette, anew=self._anew)
        self._began = time.monotonic()
        self._thread.start()

    def another_session(self, at: float) -> tuple[int, float]:
        """In the tape's thread: the number of a session that begins, the first one or another, and the time
        at which it began."""
        if self._has_session:
            return self.writer.add_session(), at
        self._has_session = True
        return self.writer.session, 0.0

    def note(self, function: _Note, *arguments: object, size: int = 0) -> None:
        """Calls ``function`` with the arguments and the time, in the order of the calls, in the tape's
        thread. size: the bytes of the arguments."""
        with self._changed:
            while self._size > _BEHIND and not self._failed:
                self._changed.wait()
            size += _ITEM
            self._size += size
            self._items.append((function, arguments, time.monotonic() - self._began, size))
            self._changed.notify_all()

    def close(self) -> None:
        """Waits until everything is written."""
        with self._changed:
            self._items.append(None)
            self._changed.notify_all()
        self._thread.join()
        if not self._failed:
            self._attempt(self._finish)
        self.writer.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._items:
                    self._changed.wait()
                item = self._items.popleft()
            if item is None:
                return
            function, arguments, at, size = item
            if not self._failed:
                self._attempt(function, *arguments, at)
                self._attempt(self._tell_masked)
            with self._changed:
                self._size -= size
                self._changed.notify_all()

    def _attempt(self, function: _Note, *arguments: object) -> None:
        if self._failed:
            return
        try:
            function(*arguments)
        except (CassetteError, OSError) as error:
            self._failed = True
            self.tell(f"nothing more is recorded: {error}")

    def _tell_masked(self) -> None:
        for masked in self.masked[self._told :]:
            self.writer.add_masked(masked)
            self._told += 1

    def _finish(self) -> None:
        """Masks what was written before it was known to be a secret."""
        self._tell_masked()
        if self._told:
            self.writer.change(self._masked_again)
            self._tell_masked()

    def _masked_again(self, exchange: Exchange) -> Exchange:
        masker, where = self.masker, "an earlier message"
        return msgspec.structs.replace(
            exchange,
            request=masker.message(exchange.request, where),
            headers=masked_headers(masker, exchange.headers, where),
            response=masked_response(masker, exchange.response, where),
            events=tuple(masked_event(masker, event, 0) for event in exchange.events),
        )
