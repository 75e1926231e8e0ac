"""The HTTP connections of a client: one for each request, all of which can be ended from any thread."""

import http.client
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)
"""What a connection that is closed under its reader can raise: http.client gives up its file, too."""


class Connections:
    """Those to the server at ``url``. closed: set by `close`."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.closed = threading.Event()

    @contextmanager
    def request(
        self,
        verb: str,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        target: str | None = None,
        timeout: float | None = None,
        last: bool = False,
    ) -> Generator[http.client.HTTPResponse, None, None]:
        """The response to a request. target: path and query, if not those of the URL; timeout: seconds; last:
        it may be sent after `close`. Raises one of BROKEN."""
        parts = self._parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=timeout)
        connection.connect()
        own = connection.sock
        with self._lock:
            self._sockets.add(own)
            if self.closed.is_set() and not last:
                own.close()
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(verb, path if target is None else target, body, dict(headers))
            yield connection.getresponse()
        finally:
            with self._lock:
                self._sockets.discard(own)
            connection.close()
            own.close()

    def close(self) -> bool:
        """Close every connection. Whether it is the first time."""
        with self._lock:
            first = not self.closed.is_set()
            self.closed.set()
            open_sockets = list(self._sockets)
        for one in open_sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        return first
