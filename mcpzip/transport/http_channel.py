"""What the two HTTP transports share: messages are posted, responses are read from bodies and streams.

The rules: messages pass byte for byte. Requests run concurrently. Notifications and responses are sent one
after another, and a slow POST delays the next for a moment only. A large message is parsed in a thread.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping

import httpx

from mcpzip import __version__
from mcpzip.http.bodies import beginning, whole
from mcpzip.http.client import Client, RawHeaders, redirect_target
from mcpzip.http.events import content_type
from mcpzip.model import limits
from mcpzip.system.tasks import run_to_completion
from mcpzip.system.threads import in_thread
from mcpzip.transport.base import (
    Dialect,
    Incoming,
    Origin,
    ProgressSink,
    Signing,
)
from mcpzip.transport.http_errors import NETWORK, NOT_OURS, error_in, failure, redirected, refused
from mcpzip.transport.jsonrpc import JsonRpcConnection
from mcpzip.transport.request_headers import request_headers, without_invalid_tools
from mcpzip.wire import (
    Era,
    Error,
    Event,
    Invalid,
    JsonRpcError,
    NotAMessage,
    Result,
    Unmatched,
)
from mcpzip.wire.envelope import ABSENT, Envelope, outline, read_error

POST_HEADERS = (
    (b"Accept", b"application/json, text/event-stream"),
    (b"Content-Type", b"application/json"),
)
STREAM_HEADERS = ((b"Accept", b"text/event-stream"), (b"Cache-Control", b"no-store"))

Around = Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport]
_SEND_DELAY = 0.2
"""Seconds for which a notification or response that is being posted delays the next message."""
_INITIALIZED_DELAY = 5.0
"""The same for `notifications/initialized`, because some servers refuse requests before they have it."""
LINGER = 2.0
"""Seconds that an HTTP response stays open after the JSON-RPC response: a connection is only reused when its
response was read to the end."""
_LARGE = 1 << 20
"""Bytes of a message from which on it is parsed in a thread."""


class HttpChannel(ABC):
    """A `Channel` over HTTP. Subclasses define where messages are posted and how responses arrive."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        signing: Signing,
        incoming: Incoming,
        around: Around | None = None,
    ) -> None:
        """around: puts something around its connections. Raises ValueError for an invalid proxy in the
        environment."""
        self.dialect: Dialect | None = None
        self._client = Client(url, signing.auth, signing.environment)
        if around is not None:
            self._client.pass_through(around)
        self._signing = signing
        self._rpc = JsonRpcConnection(incoming, self._post_message, full=lambda: self._full)
        self._tasks: set[asyncio.Task[None]] = set()
        self._posting: dict[asyncio.Task[None], int] = {}
        if not any(name.lower() == "user-agent" for name in headers):
            headers = {**headers, "User-Agent": f"mcpzip/{__version__}"}
        self._config_headers = tuple((_encoded(name), _encoded(value)) for name, value in headers.items())

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
        definition: bytes | None = None,
        origin: Origin | None = None,
    ) -> bytes:
        number, line, answer = self._rpc.request(method, params, on_progress, origin)
        post: asyncio.Task[None] | None = None
        try:
            headers = request_headers(method, params, self.dialect, definition)
            own_headers = headers if isinstance(headers, list) else await headers
            post = self._spawn(self._post_request(number, method, line[:-1], own_headers))
            result = await answer
        except asyncio.CancelledError:
            self._cancel(number, post, cancellable)
            raise
        finally:
            self._rpc.forget(number)
        if method == "tools/list" and self._modern:
            return await without_invalid_tools(result)
        return result

    async def notify(self, method: str, params: bytes | None = None) -> None:
        if self._rpc.gone is None:
            posted = self._post_message(self._rpc.peer.notify(method, params))
            if posted is not None and method == "notifications/initialized":
                await asyncio.wait({posted}, timeout=_INITIALIZED_DELAY)

    def diagnosis(self) -> str:
        return ""

    async def aclose(self) -> None:
        """Closes the connection. Open requests fail."""
        self._rpc.end("the connection was closed")
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._end_session()
        finally:
            # A cancellation must not leave connections open; closing them does not block.
            await run_to_completion(self._client.aclose())

    # ---- for subclasses

    @property
    def _endpoint(self) -> httpx.URL:
        """Where messages are posted."""
        return self._client.url

    @property
    def _in_session(self) -> bool:
        return False

    @property
    def _closing_cancels(self) -> bool:
        """Whether closing the HTTP response cancels the request. If not, a notification does."""
        return False

    @abstractmethod
    async def _handle_response(self, number: int, method: str, response: httpx.Response) -> None:
        """Handles the ``response`` to the request ``number``; it is no HTTP error."""

    @abstractmethod
    async def _end_session(self) -> None:
        """Tells the server that the session ends."""

    def _headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of every request, without those of the config."""
        return [] if self.dialect is None else [(b"Mcp-Protocol-Version", self.dialect.version.encode())]

    # ---- messages out

    @property
    def _modern(self) -> bool:
        return self.dialect is not None and self.dialect.era is Era.MODERN

    @property
    def _full(self) -> bool:
        """Whether too many notifications and responses are unsent."""
        return len(self._posting) >= limits.ASKED or sum(self._posting.values()) >= limits.WAITING

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(
        self, method: str, url: httpx.URL, headers: RawHeaders, content: bytes | None = None
    ) -> httpx.Response:
        """See `Client.send`. Our own headers override those of the config."""
        own = [*headers, *self._headers()]
        ours = {name.lower() for name, _ in own}
        others = [each for each in self._config_headers if each[0].lower() not in ours]
        return await self._client.send(method, url, [*own, *others], content)

    async def _post_request(self, number: int, method: str, message: bytes, headers: RawHeaders) -> None:
        """Posts a request and handles the HTTP response, or fails the request."""
        try:
            if self._posting:
                await asyncio.wait(set(self._posting), timeout=_SEND_DELAY)
            in_session = self._in_session
            response = await self._send("POST", self._endpoint, [*POST_HEADERS, *headers], message)
            try:
                if (fault := await self._fault(response, in_session)) is not None:
                    self._rpc.fail(number, fault)
                    if in_session and response.status_code == 404:
                        self._rpc.end("the server forgot our session")
                else:
                    await self._handle_response(number, method, response)
            finally:
                await response.aclose()
        except Exception as error:
            self._rpc.fail(number, failure(error, self._client.url))

    async def _fault(self, response: httpx.Response, in_session: bool) -> Exception | None:
        """The error that ``response`` stands for; None when it may hold the JSON-RPC response."""
        target = redirect_target(response)
        if response.status_code < 400 and target is None:
            return None
        # A JSON body may be the JSON-RPC response, which can be long.
        is_json = content_type(response) == "application/json"
        body = await (whole(response, limits.MESSAGE) if is_json else beginning(response))
        if (error := self._signing.refused(response.status_code)) is not None:
            return error
        if target is not None:
            return redirected(response, target)
        forgotten = in_session and response.status_code == 404
        if not forgotten and (rpc_error := error_in(body)) is not None:
            return JsonRpcError(rpc_error)
        return refused(response, body, in_session=in_session)

    def _cancel(self, number: int, post: "asyncio.Task[None] | None", cancellable: bool) -> None:
        """Cancels the request ``number`` at the server."""
        if post is None:
            return
        if self._closing_cancels or not cancellable:
            post.cancel()
        elif (notice := self._rpc.peer.cancel(number)) is not None:
            self._post_message(notice)
            asyncio.get_running_loop().call_later(LINGER, post.cancel)

    def _post_message(self, line: bytes) -> "asyncio.Task[None] | None":
        """Posts a notification or response, in order. None when it is dropped because too many are unsent."""
        if self._full:
            return None
        before = next(reversed(self._posting), None)
        task = self._spawn(self._post_after(line[:-1], before))
        self._posting[task] = len(line)
        task.add_done_callback(self._posting.pop)
        return task

    async def _post_after(self, message: bytes, before: "asyncio.Task[None] | None") -> None:
        try:
            if before is not None:
                await asyncio.wait({before}, timeout=_SEND_DELAY)
            response = await self._send("POST", self._endpoint, POST_HEADERS, message)
            await beginning(response, limits.REFUSAL_TIME)
        except NETWORK:
            pass  # if the server is unreachable, the next request fails

    # ---- messages in

    async def _receive(self, text: bytes, number: int | None = None) -> str:
        """Handles a message. number: of our request in whose HTTP response it came.

        Returns why it can't be the response to that request, as a part of a sentence; "" when it may be.
        """
        large = len(text) > _LARGE
        envelope = await in_thread(lambda: outline(text), "outline") if large else outline(text)
        event = self._rpc.peer.message(text, envelope)
        if number is not None and self._rpc.is_open(number) and isinstance(envelope, Envelope):
            event = _response_to(number, event, envelope)
        self._rpc.received(event, number)
        return NOT_OURS if isinstance(event, NotAMessage | Invalid) else ""


def _response_to(number: int, event: Event, envelope: Envelope) -> Event:
    """``event``, which came in the HTTP response to our request ``number``. A JSON-RPC response in it is
    taken for that request whatever its id, which is null when the server could not read the request's id
    (JSON-RPC 2.0, 5).
    """
    if not isinstance(event, Unmatched) or event.kind != "answer":
        return event
    if envelope.error is not ABSENT and bytes(envelope.error) != b"null":
        return Error(number, read_error(bytes(envelope.error)))
    return event if envelope.result is ABSENT else Result(number, bytes(envelope.result))


def _encoded(text: str) -> bytes:
    return text.encode("latin-1") if all(ord(letter) < 256 for letter in text) else text.encode()
