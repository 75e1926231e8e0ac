"""Records legacy SSE: one stream is one session, and messages are posted to the URL that it names."""

import re
from collections.abc import AsyncIterator
from urllib.parse import urljoin

from mcpzip.cassettes.cassette import Response
from mcpzip.cassettes.http_observer import Body, request_headers, response_headers
from mcpzip.cassettes.observer import Observer, Pending
from mcpzip.cassettes.tape import Tape
from mcpzip.cassettes.taps import Headers, Relocate, Tap

_BLOCK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ENDPOINT = re.compile(rb"^event: ?endpoint\r?$", re.MULTILINE)
_DATA = re.compile(rb"^(data: ?)([^\r\n]*)", re.MULTILINE)
_HELD = 64 * 1024
"""Bytes of a stream's beginning that are held until the event with the URL comes. More pass as they are."""


class SseRecorder:
    """The streams of one server."""

    def __init__(self, tape: Tape, url: str) -> None:
        """url: of the server's stream."""
        self._tape, self._url = tape, url
        self._streams: dict[str, _Stream] = {}  # by the URL to which its messages are posted

    def tap(self, verb: str, is_stream: bool, url: str, headers: Headers, body: bytes) -> Tap:
        """What records a request. url: the target at the server."""
        if verb == "GET" and is_stream:
            return _StreamTap(self, headers)
        if verb == "POST" and (stream := self._streams.get(url)):
            return _PostTap(self._tape, stream, headers, body)
        return Tap()

    def note_posts(self, endpoint: str, stream: "_Stream") -> None:
        """The stream said to which URL its messages are to be posted."""
        self._streams[urljoin(self._url, endpoint)] = stream

    def begin(self, stream: "_Stream", headers: Headers, at: float) -> None:
        """In the tape's thread: a client opens a stream."""
        session, begun = self._tape.another_session(at)
        stream.begin(Observer(self._tape.writer.add, self._tape.masker, session=session), begun)
        stream.get = stream.client(b"", at, "GET", headers)

    @property
    def tape(self) -> Tape:
        """Where it is recorded."""
        return self._tape

    def close(self) -> None:
        """The recorder ends."""
        for stream in self._streams.values():
            self._tape.note(stream.ended, False, True)


class _Stream:
    """One stream and what is posted for it; in the tape's thread."""

    def __init__(self) -> None:
        self.get: Pending | None = None
        self._observer: Observer | None = None
        self._begun = 0.0
        self._response: Response | None = None
        self._body = Body()

    def begin(self, observer: Observer, begun: float) -> None:
        self._observer, self._begun = observer, begun

    def client(self, body: bytes, at: float, verb: str, headers: Headers) -> Pending | None:
        """The client sent a request."""
        if self._observer is None:
            return None
        kept = request_headers(headers)
        return self._observer.client(body, at - self._begun, verb=verb, headers=kept, awaits_response=True)

    def posted(self, pending: Pending | None, response: Response | None, body: bytes, at: float) -> None:
        """The response to what was posted."""
        if self._observer is not None and pending is not None:
            self._observer.responded(pending, response, body, at - self._begun)

    def responded(self, status: int, headers: Headers, at: float) -> None:
        """The head of the stream's response."""
        self._response = Response(status=status, headers=response_headers(headers))
        self._body = Body(dict(headers))

    def received(self, data: bytes, at: float) -> None:
        """A part of the stream."""
        if self._observer is None:
            return
        for message, fields in self._body.feed(data):
            if self.get is not None:
                self._observer.responded(self.get, self._response, message, at - self._begun, fields)
                self.get = None
            else:
                self._observer.server(message, at - self._begun, fields)

    def ended(self, cut: bool, left: bool, at: float) -> None:
        """The stream ended."""
        if self._observer is None:
            return
        if self.get is not None:
            self._observer.responded(self.get, self._response, self._body.whole, at - self._begun)
            self.get = None
        elif not left:
            self._observer.server_ended(at - self._begun, cut=cut)
        self._observer.close()


class _StreamTap(Tap):
    def __init__(self, recorder: SseRecorder, headers: Headers) -> None:
        self._recorder, self._headers = recorder, headers
        self._stream = _Stream()
        self._over = False

    def began(self) -> None:
        self._recorder.tape.note(self._recorder.begin, self._stream, self._headers)

    def responded(self, status: int, headers: Headers) -> None:
        self._recorder.tape.note(self._stream.responded, status, headers)

    async def passing(self, parts: AsyncIterator[bytes], relocate: Relocate) -> AsyncIterator[bytes]:
        held: bytes | None = b""
        async for part in parts:
            self._recorder.tape.note(self._stream.received, part, size=len(part))
            if held is None:
                yield part
                continue
            held += part
            while held is not None and (end := _BLOCK.search(held)):
                block, held = held[: end.end()], held[end.end() :]
                if _ENDPOINT.search(block):
                    yield self._relocated(block, relocate) + held
                    held = None
                else:
                    yield block
            if held is not None and len(held) > _HELD:
                yield held
                held = None
        if held:
            yield held

    def _relocated(self, block: bytes, relocate: Relocate) -> bytes:
        def moved(found: re.Match[bytes]) -> bytes:
            endpoint = found[2].decode("utf-8", "replace")
            self._recorder.note_posts(endpoint, self._stream)
            return found[1] + relocate(endpoint).encode()

        return _DATA.sub(moved, block)

    def ended(self, *, cut: bool = False, left: bool = False) -> None:
        if not self._over:
            self._over = True
            self._recorder.tape.note(self._stream.ended, cut, left)


class _PostTap(Tap):
    def __init__(self, tape: Tape, stream: _Stream, headers: Headers, body: bytes) -> None:
        self._tape, self._stream, self._headers, self._sent = tape, stream, headers, body
        self._pending: Pending | None = None
        self._response: Response | None = None
        self._body = Body()
        self._over = False

    def began(self) -> None:
        self._tape.note(self._begin, size=len(self._sent))

    def _begin(self, at: float) -> None:
        self._pending = self._stream.client(self._sent, at, "POST", self._headers)

    def responded(self, status: int, headers: Headers) -> None:
        self._response = Response(status=status, headers=response_headers(headers))
        self._body = Body({name: value for name, value in headers if name == "content-encoding"})

    async def passing(self, parts: AsyncIterator[bytes], relocate: Relocate) -> AsyncIterator[bytes]:
        async for part in parts:
            self._body.feed(part)
            yield part

    def ended(self, *, cut: bool = False, left: bool = False) -> None:
        if not self._over:
            self._over = True
            self._tape.note(self._end)

    def _end(self, at: float) -> None:
        # What a server says to accept a message is no answer to it: that comes on the stream.
        accepted = self._response is not None and self._response.status == 202
        self._stream.posted(self._pending, self._response, b"" if accepted else self._body.whole, at)
