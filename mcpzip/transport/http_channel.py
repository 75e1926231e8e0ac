"""What the two transports over HTTP share: messages are posted, answers are read from bodies and streams.

The rules: a message goes out and comes in as the bytes it is. What asks for no answer is sent in order, one
after another; a server that is slow to take one holds up the next for a moment only. Requests run side by
side. Nothing of a message's size is read on the event loop in one go.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping

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
    ProgressSink,
    RpcFaultError,
    Signing,
)
from mcpzip.transport.http_errors import NETWORK, NOT_OURS, error_in, failure, redirected, refused
from mcpzip.transport.jsonrpc import JsonRpcConnection
from mcpzip.transport.request_headers import request_headers, without_invalid_tools
from mcpzip.wire import Era, Error, Event, Invalid, NotAMessage, Result, Unmatched
from mcpzip.wire.envelope import ABSENT, Envelope, outline, read_error

POSTING = (
    (b"Accept", b"application/json, text/event-stream"),
    (b"Content-Type", b"application/json"),
)
LISTENING = ((b"Accept", b"text/event-stream"), (b"Cache-Control", b"no-store"))

_HOLD = 0.2
"""Seconds that a message which asks for no answer holds up the next."""
_INITIALIZED = 5.0
"""Seconds that `notifications/initialized` holds up what is asked next: some servers refuse that before."""
LINGER = 2.0
"""Seconds that the response to a request stays open when there is nothing more to come of it: a connection
whose response is read to its end is used again."""
_LARGE = 1 << 20
"""Bytes of a message that is read in a thread."""
_USER_AGENT = b"mcpzip/" + __version__.encode()


class HttpChannel(ABC):
    """A `Channel` over HTTP. Where messages are posted, and answers come from, is its heirs'."""

    def __init__(self, url: str, headers: Mapping[str, str], signing: Signing, incoming: Incoming) -> None:
        """Raises ValueError for an environment's proxy that can't be."""
        self.dialect: Dialect | None = None
        self._client = Client(url, signing.auth)
        self._signing = signing
        self._rpc = JsonRpcConnection(incoming, self._tell, full=lambda: self._full)
        self._tasks: set[asyncio.Task[None]] = set()
        self._telling: dict[asyncio.Task[None], int] = {}
        self._config_headers = tuple((_encoded(name), _encoded(value)) for name, value in headers.items())

    async def request(
        self,
        method: str,
        params: bytes | None,
        *,
        on_progress: ProgressSink | None = None,
        cancellable: bool = True,
        definition: bytes | None = None,
    ) -> bytes:
        number, line, answer = self._rpc.request(method, params, on_progress)
        post: asyncio.Task[None] | None = None
        try:
            headers = request_headers(method, params, self.dialect, definition)
            repeated = headers if isinstance(headers, list) else await headers
            post = self._spawn(self._ask(number, method, line[:-1], repeated))
            result = await answer
        except asyncio.CancelledError:
            self._take_back(number, post, cancellable)
            raise
        finally:
            self._rpc.forget(number)
        if method == "tools/list" and self._modern:
            return await without_invalid_tools(result)
        return result

    async def notify(self, method: str, params: bytes | None = None) -> None:
        if self._rpc.gone is None:
            told = self._tell(self._rpc.peer.notify(method, params))
            if told is not None and method == "notifications/initialized":
                await asyncio.wait({told}, timeout=_INITIALIZED)

    def diagnosis(self) -> str:
        return ""

    async def aclose(self) -> None:
        """Ends the connection. What is under way fails."""
        self._rpc.end("the connection was closed")
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._leave()
        finally:
            # It waits for nobody; broken off it would leave what it hasn't come to open.
            await run_to_completion(self._client.aclose())

    # ---- for heirs

    @property
    def _endpoint(self) -> httpx.URL:
        """Where messages are posted."""
        return self._client.url

    @property
    def _in_session(self) -> bool:
        return False

    @property
    def _closing_cancels(self) -> bool:
        """Whether a request whose response is closed is cancelled by that. If not, the server is told."""
        return False

    @abstractmethod
    async def _answered(self, number: int, method: str, response: httpx.Response) -> None:
        """Takes in the ``response`` to the request ``number``, which is no HTTP error."""

    @abstractmethod
    async def _leave(self) -> None:
        """Says good-bye."""

    def _headers(self) -> list[tuple[bytes, bytes]]:
        """What every request has besides what the config says."""
        return [] if self.dialect is None else [(b"Mcp-Protocol-Version", self.dialect.version.encode())]

    # ---- messages out

    @property
    def _modern(self) -> bool:
        return self.dialect is not None and self.dialect.era is Era.MODERN

    @property
    def _full(self) -> bool:
        """Whether the server takes too little of what it is told."""
        return len(self._telling) >= limits.ASKED or sum(self._telling.values()) >= limits.WAITING

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(
        self, method: str, url: httpx.URL, headers: RawHeaders, content: bytes | None = None
    ) -> httpx.Response:
        """See `Client.send`. What we say ourselves goes before what the config says."""
        own = [*headers, *self._headers()]
        ours = {name.lower() for name, _ in own}
        others = [each for each in self._config_headers if each[0].lower() not in ours]
        if not any(name.lower() == b"user-agent" for name, _ in others):
            others.append((b"User-Agent", _USER_AGENT))
        return await self._client.send(method, url, [*own, *others], content)

    async def _ask(self, number: int, method: str, message: bytes, headers: RawHeaders) -> None:
        """Posts a request and sees to it that it has an outcome, unless that comes on another stream."""
        try:
            if self._telling:
                await asyncio.wait(set(self._telling), timeout=_HOLD)
            in_session = self._in_session
            response = await self._send("POST", self._endpoint, [*POSTING, *headers], message)
            try:
                if (fault := await self._fault(response, in_session)) is not None:
                    self._rpc.fail(number, fault)
                    if in_session and response.status_code == 404:
                        self._rpc.end("the server forgot our session")
                else:
                    await self._answered(number, method, response)
            finally:
                await response.aclose()
        except Exception as error:
            self._rpc.fail(number, failure(error, self._client.url))

    async def _fault(self, response: httpx.Response, in_session: bool) -> Exception | None:
        """Why ``response`` is no answer; None when it may be one."""
        target = redirect_target(response)
        if response.status_code < 400 and target is None:
            return None
        # What a server says as JSON may be the answer, of any length.
        is_json = content_type(response) == "application/json"
        body = await (whole(response, limits.MESSAGE) if is_json else beginning(response))
        if (wanted := self._signing.refused(response.status_code)) is not None:
            return wanted
        if target is not None:
            return redirected(response, target)
        forgotten = in_session and response.status_code == 404
        if not forgotten and (error := error_in(body)) is not None:
            return RpcFaultError(error)
        return refused(response, body, in_session=in_session)

    def _take_back(self, number: int, post: "asyncio.Task[None] | None", cancellable: bool) -> None:
        """Nobody waits for the request ``number`` any more, and the server is to know."""
        if post is None:
            return
        if self._closing_cancels or not cancellable:
            post.cancel()
        elif (notice := self._rpc.peer.cancel(number)) is not None:
            self._tell(notice)
            asyncio.get_running_loop().call_later(LINGER, post.cancel)

    def _tell(self, line: bytes) -> "asyncio.Task[None] | None":
        """Posts what asks for no answer. None: it isn't sent, as the server takes nothing that it is told."""
        if self._full:
            return None
        before = next(reversed(self._telling), None)
        task = self._spawn(self._told(line[:-1], before))
        self._telling[task] = len(line)
        task.add_done_callback(self._telling.pop)
        return task

    async def _told(self, message: bytes, before: "asyncio.Task[None] | None") -> None:
        try:
            if before is not None:
                await asyncio.wait({before}, timeout=_HOLD)
            response = await self._send("POST", self._endpoint, POSTING, message)
            await beginning(response, limits.REFUSAL_TIME)
        except NETWORK:
            pass  # nobody waits for what becomes of it; if the server is gone, the next request says so

    # ---- messages in

    async def _receive(self, text: bytes, number: int | None = None) -> str:
        """Takes in a message. number: of our request in whose response it came.

        Returns why it can't be the answer to that request, as a part of a sentence; "" where it may be.
        """
        large = len(text) > _LARGE
        envelope = await in_thread(lambda: outline(text), "outline") if large else outline(text)
        event = self._rpc.peer.message(text, envelope)
        if number is not None and self._rpc.is_open(number) and isinstance(envelope, Envelope):
            event = _answer_to(number, event, envelope)
        self._rpc.received(event)
        return NOT_OURS if isinstance(event, NotAMessage | Invalid) else ""


def _answer_to(number: int, event: Event, envelope: Envelope) -> Event:
    """``event``, which came in the response to our request ``number``. An answer there is to it, whatever
    its id: that is null where the server could not tell what it was asked (JSON-RPC 2.0, 5).
    """
    if not isinstance(event, Unmatched) or event.kind != "answer":
        return event
    if envelope.error is not ABSENT and bytes(envelope.error) != b"null":
        return Error(number, read_error(bytes(envelope.error)))
    return event if envelope.result is ABSENT else Result(number, bytes(envelope.result))


def _encoded(text: str) -> bytes:
    return text.encode("latin-1") if all(ord(letter) < 256 for letter in text) else text.encode()
