"""HTTP+SSE, the older transport (2024-11-05 `basic/transports`): one event stream, and messages that are
posted to the URL which it names.
"""

import http.client
import queue
import threading
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from mcpzip.model.limits import MESSAGE
from mcpzip.wire.event_stream import EventReader
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.clients.channel import Sink
from mcpzip_fakes.clients.http_connections import BROKEN, Connections

_CHUNK = 1 << 16
_QUOTED = 300
_CONNECT = 30.0
"""Seconds in which the stream must name the URL for messages."""


class _Post(NamedTuple):
    """A message to post. id: of a request, None for others."""

    text: bytes
    id: object


class SseChannel:
    """See `channel.Channel`."""

    def __init__(self, url: str, sink: Sink, *, headers: Mapping[str, str] | None = None) -> None:
        """Raises ConnectionError if the stream doesn't say where to post."""
        self._url, self._sink, self._given = url, sink, dict(headers or {})
        self._connections = Connections(url)
        self._target = ""
        self._why = "the stream names no URL for messages"
        self._named = threading.Event()
        self._outgoing: queue.SimpleQueue[_Post | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._named.wait(_CONNECT)
        if not self._target:
            self._connections.close()
            raise ConnectionError(self._why)
        threading.Thread(target=self._post_in_turn, daemon=True).start()

    def send(self, message: JsonObject) -> None:
        """See `Channel`."""
        self.send_text(msgspec.json.encode(message), message.get("id") if "method" in message else None)

    def send_text(self, text: bytes, id: object = None, headers: Mapping[str, str] | None = None) -> None:
        """See `Channel`. headers: there are none of a message."""
        self._outgoing.put(_Post(text, id))

    def opened(self) -> None:
        """See `Channel`."""

    def close(self) -> None:
        """End the stream, which ends the session."""
        self.kill()

    def kill(self) -> None:
        """End the stream at once."""
        first = self._connections.close()
        self._outgoing.put(None)
        if first:
            self._sink.ended("this client closed it")

    def sweep(self) -> None:
        """See `kill`: there is no process."""
        self.kill()

    def _post_in_turn(self) -> None:
        while (post := self._outgoing.get()) is not None:
            try:
                why = self._post(post)
            except BROKEN as error:
                why = f"the connection broke: {error}"
            if why and post.id is not None:
                self._sink.unanswered(post.id, why)

    def _post(self, post: _Post) -> str:
        """Post a message. Returns why it will have no answer, "" if it was accepted."""
        headers = {"Content-Type": "application/json", **self._given}
        with self._connections.request("POST", post.text, headers, target=self._target) as response:
            body = response.read(MESSAGE)
            if response.status < 400:
                return ""
            said = body[:_QUOTED].decode("utf-8", "backslashreplace")
            return f"HTTP {response.status}: {said}".rstrip(": ")

    def _listen(self) -> None:
        why = "the server ended the stream"
        try:
            headers = {"Accept": "text/event-stream", **self._given}
            with self._connections.request("GET", None, headers) as response:
                self._take(response)
        except BROKEN as error:
            why = f"the connection broke: {error}"
        if not self._target:
            self._why = f"{self._why} ({why})" if why.startswith("the conn") else self._why
        self._named.set()
        if not self._connections.closed.is_set():
            self._sink.ended(why)

    def _take(self, response: http.client.HTTPResponse) -> None:
        kind = response.getheader("content-type", "").partition(";")[0].strip().lower()
        if response.status != 200 or kind != "text/event-stream":
            self._why = f"the URL is no event stream (HTTP {response.status})"
            return
        reader = EventReader(MESSAGE)
        while data := response.read1(_CHUNK):
            for event in reader.feed(data):
                if any(field.partition(b":")[2].strip() == b"endpoint" for field in event.fields):
                    self._name(event.data.decode("utf-8", "replace"))
                elif event.data:
                    self._sink.took(event.data)

    def _name(self, endpoint: str) -> None:
        """The stream says where to post; another origin gets nothing."""
        ours, target = urlsplit(self._url), urlsplit(urljoin(self._url, endpoint))
        if (target.scheme, target.netloc) != (ours.scheme, ours.netloc):
            self._why = "the stream names a URL of another server for messages"
        elif not self._target:
            self._target = (target.path or "/") + (f"?{target.query}" if target.query else "")
        self._named.set()
