"""Streamable HTTP: a session for each client (2025-11-25 `basic/transports/streamable-http`).

The rule: each request has a connection of its own and a thread that reads its answer, so that none waits for
another. Messages that are no requests are posted one after another.
"""

import http.client
import queue
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from mcpzip.model.limits import MESSAGE
from mcpzip.wire.event_stream import EventReader
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.clients.channel import Sink

_CHUNK = 1 << 16
_QUOTED = 300
_GRACE = 5.0
_BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)
"""What a connection that is closed under its reader can raise: http.client gives up its file, too."""


class _Message(NamedTuple):
    """A message to post. id: of a request, None for others."""

    text: bytes
    id: object
    headers: Mapping[str, str]


class HttpChannel:
    """See `channel.Channel`. session: the session id, "" before there is one."""

    def __init__(
        self,
        url: str,
        sink: Sink,
        *,
        headers: Mapping[str, str] | None = None,
        errors_answer: bool = False,
    ) -> None:
        """errors_answer: whether the body of an HTTP error is the answer if it is a JSON object."""
        self._errors_answer = errors_answer
        self._parts, self._sink, self._given = urlsplit(url), sink, dict(headers or {})
        self.session, self._version = "", ""
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._outgoing: queue.SimpleQueue[_Message | threading.Event | None] = queue.SimpleQueue()
        self._begin(self._post_in_turn)

    def send(self, message: JsonObject) -> None:
        """See `Channel`."""
        self.send_text(msgspec.json.encode(message), message.get("id") if "method" in message else None)

    def send_text(self, text: bytes, id: object = None, headers: Mapping[str, str] | None = None) -> None:
        """See `Channel`."""
        message = _Message(text, id, headers or {})
        if id is not None:
            self._begin(self._post, message)
        else:
            self._outgoing.put(message)

    def opened(self) -> None:
        """Open the stream for messages that belong to no request, once the server has all that was sent: a
        request must not overtake ``notifications/initialized``."""
        sent = threading.Event()
        self._outgoing.put(sent)
        sent.wait(_GRACE)
        self._begin(self._listen)

    def close(self) -> None:
        """End the session, then every connection."""
        if self.session and not self._closed:
            with suppress(*_BROKEN):
                self._exchange("DELETE", None, timeout=_GRACE)
        self.kill()

    def kill(self) -> None:
        """Close every connection; the session stays, as after a crash."""
        with self._lock:
            first, self._closed = not self._closed, True
            open_sockets = list(self._sockets)
        for one in open_sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._outgoing.put(None)
        if first:
            self._sink.ended("this client closed it")

    def sweep(self) -> None:
        """See `kill`: there is no process."""
        self.kill()

    def _begin(self, work: object, *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()  # type: ignore[arg-type]

    def _post_in_turn(self) -> None:
        while (message := self._outgoing.get()) is not None:
            if isinstance(message, threading.Event):
                message.set()
                continue
            with suppress(*_BROKEN):
                self._exchange("POST", message)

    def _post(self, message: "_Message") -> None:
        try:
            why = self._exchange("POST", message)
        except _BROKEN as error:
            why = f"the connection broke: {error}"
        self._sink.unanswered(message.id, why)

    def _listen(self) -> None:
        with suppress(*_BROKEN):
            self._exchange("GET", None)

    def _exchange(self, verb: str, message: "_Message | None", timeout: float | None = None) -> str:
        """One HTTP request, and all messages in its response. Returns why ``message`` may have no answer."""
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "127.0.0.1", self._parts.port, timeout=timeout)
        connection.connect()
        own = connection.sock
        with self._lock:
            self._sockets.add(own)
            if self._closed and verb != "DELETE":
                own.close()
        try:
            body = None if message is None else message.text
            path = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
            own_headers = {} if message is None else message.headers
            connection.request(verb, path, body, {**self._headers(verb), **own_headers})
            response = connection.getresponse()
            if not self.session:  # that of the answer to initialize
                self.session = response.getheader("mcp-session-id", "")
            self._take(response, None if message is None else message.id)
            return f"HTTP {response.status}"
        finally:
            with self._lock:
                self._sockets.discard(own)
            connection.close()
            own.close()

    def _take(self, response: http.client.HTTPResponse, id: object) -> None:
        kind = response.getheader("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            reader = EventReader(MESSAGE)
            while data := response.read1(_CHUNK):
                for event in reader.feed(data):
                    if event.data:
                        self._took(event.data)
            return
        body = response.read(MESSAGE)
        answers = response.status < 400 or (self._errors_answer and body.lstrip()[:1] == b"{")
        if kind == "application/json" and body and answers:
            self._took(body)
        elif id is not None and response.status >= 400:
            said = body[:_QUOTED].decode("utf-8", "backslashreplace")
            self._sink.unanswered(id, f"HTTP {response.status}: {said}".rstrip(": "))

    def _took(self, raw: bytes) -> None:
        if not self._version:  # the first message is the answer to initialize
            with suppress(msgspec.DecodeError, KeyError, TypeError):
                self._version = str(msgspec.json.decode(raw)["result"]["protocolVersion"])
        self._sink.took(raw)

    def _headers(self, verb: str) -> dict[str, str]:
        accepted = "text/event-stream" if verb == "GET" else "application/json, text/event-stream"
        headers = {"Accept": accepted, "Content-Type": "application/json", **self._given}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        return headers
