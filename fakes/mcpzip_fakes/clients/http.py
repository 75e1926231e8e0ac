"""Streamable HTTP: a session for each client (2025-11-25 `basic/transports/streamable-http`).

The rules:

- Each request has a connection of its own and a thread that reads its answer, so that none waits for another.
  Messages that are no requests are posted one after another.
- A stream that ends too early is resumed after the last event that had an id (``Last-Event-ID``), when the
  server's ``retry`` has passed; not one of whose events had an id.
"""

import http.client
import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from mcpzip.model.limits import MESSAGE
from mcpzip.wire.event_stream import EventReader
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.clients.channel import Sink
from mcpzip_fakes.clients.http_connections import BROKEN, Connections

_CHUNK = 1 << 16
_QUOTED = 300
_GRACE = 5.0
_RETRY, _LONGEST_RETRY = 0.1, 10.0
"""Seconds before a stream is resumed: without ``retry``, and at most."""
_RESUMED_IN_VAIN = 5
"""Times in a row that a stream is resumed without another event."""


class _Message(NamedTuple):
    """A message to post. id: of a request, None for others."""

    text: bytes
    id: object
    headers: Mapping[str, str]


class _Answered(msgspec.Struct):
    """The members of a message that tell answers from others."""

    id: object = None
    method: object = None


class _Stream:
    """An event stream and its resumed parts. id: of the request that it answers, None for the stream of
    messages that belong to no request; last: the id of the last event; retry: in seconds; answered: whether
    the answer has come; events: how many came."""

    def __init__(self, id: object) -> None:
        self.id, self.last, self.retry = id, "", _RETRY
        self.answered, self.events = False, 0

    def took(self, data: bytes, fields: tuple[bytes, ...]) -> None:
        """An event came."""
        self.events += 1
        for field in fields:
            name, _, value = field.decode("utf-8", "replace").partition(":")
            if name == "id":
                self.last = value.strip()
            elif name == "retry" and value.strip().isdecimal():
                self.retry = min(int(value.strip()[:9]) / 1000, _LONGEST_RETRY)
        if self.id is not None and data:
            with suppress(msgspec.DecodeError):
                said = msgspec.json.decode(data, type=_Answered)
                self.answered = self.answered or (said.method is None and said.id == self.id)


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
        self._sink, self._given = sink, dict(headers or {})
        self.session, self._version = "", ""
        self._connections = Connections(url)
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
        if self.session and not self._connections.closed.is_set():
            with suppress(*BROKEN):
                self._exchange("DELETE", None, timeout=_GRACE)
        self.kill()

    def kill(self) -> None:
        """Close every connection; the session stays, as after a crash."""
        first = self._connections.close()
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
            with suppress(*BROKEN):
                self._exchange("POST", message)

    def _post(self, message: "_Message") -> None:
        stream = _Stream(message.id)
        try:
            why = self._exchange("POST", message, stream)
        except BROKEN as error:
            why = f"the connection broke: {error}"
        self._resume(stream)
        self._sink.unanswered(message.id, why)

    def _listen(self) -> None:
        stream = _Stream(None)
        with suppress(*BROKEN):
            self._exchange("GET", None, stream)
        self._resume(stream)

    def _resume(self, stream: _Stream) -> None:
        """Get the rest of a stream, if it can be had."""
        in_vain = 0
        while stream.last and not stream.answered and in_vain < _RESUMED_IN_VAIN:
            if self._connections.closed.wait(stream.retry):
                return
            before = stream.events
            with suppress(*BROKEN):
                self._exchange("GET", None, stream)
            in_vain = in_vain + 1 if stream.events == before else 0

    def _exchange(
        self,
        verb: str,
        message: "_Message | None",
        stream: _Stream | None = None,
        timeout: float | None = None,
    ) -> str:
        """One HTTP request, and all messages in its response. Returns why ``message`` may have no answer."""
        body = None if message is None else message.text
        headers = {**self._headers(verb), **({} if message is None else message.headers)}
        if verb == "GET" and stream is not None and stream.last:
            headers["Last-Event-ID"] = stream.last
        with self._connections.request(
            verb, body, headers, timeout=timeout, last=verb == "DELETE"
        ) as response:
            if not self.session:  # that of the answer to initialize
                self.session = response.getheader("mcp-session-id", "")
            self._take(response, None if message is None else message.id, stream)
            return f"HTTP {response.status}"

    def _take(self, response: http.client.HTTPResponse, id: object, stream: _Stream | None) -> None:
        kind = response.getheader("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            reader = EventReader(MESSAGE)
            while data := response.read1(_CHUNK):
                for event in reader.feed(data):
                    if stream is not None:
                        stream.took(*event)
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
