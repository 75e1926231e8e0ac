"""One end of a JSON-RPC conversation, under asyncio.

The rule: nothing here depends on the meaning of a method. A sent request has one outcome, a received request
one answer, and cancelling a request here cancels it at the other end.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    NotAnObject,
    Notification,
    Peer,
    PeerClosedError,
    Progress,
    Request,
    Result,
    Role,
    RpcError,
    progress_token,
    with_members,
    with_progress_token,
)


class RefusedError(Exception):
    """A request is answered with this error."""

    def __init__(self, error: RpcError) -> None:
        self.error = error
        super().__init__(error.message)


class GoneError(RefusedError):
    """The other end has gone."""

    def __init__(self, why: str) -> None:
        super().__init__(RpcError(INTERNAL_ERROR, why))


class Party(Protocol):
    """A receiver of requests and notifications: an end, or its representative."""

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        about: bytes | None = None,
        progress: Callable[[bytes], None] | None = None,
        origin: "tuple[Party, bytes] | None" = None,
    ) -> bytes:
        """See `End.request`."""

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        """See `End.notify`."""

    def forward_notification(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """See `End.forward_notification`."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A sent request. progress: called with its progress; origin: the client for which it was sent, and the
    id of that client's request."""

    answer: asyncio.Future[bytes]
    progress: Callable[[bytes], None] | None
    origin: tuple[Party, bytes] | None


class End(ABC):
    """One end of a conversation. A subclass sends (`write`), answers requests (`handle_request`) and handles
    notifications (`handle_notification`)."""

    def __init__(self, role: Role) -> None:
        self.peer = Peer(role=role)
        self.sent: dict[int, Sent] = {}
        self.serving: dict[bytes, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        """Send a line. about: the id of the received request that the line belongs to; last: no more lines
        belong to it; an empty ``line`` only marks the end."""

    def send_cancellation(self, number: int, line: bytes) -> None:
        """Send the cancellation of a sent request."""
        self.write(line, None)

    @abstractmethod
    async def handle_request(self, request: Request) -> bytes:
        """The result of a received request. Raises RefusedError."""

    @abstractmethod
    def handle_notification(self, method: str, params: bytes | None) -> None:
        """Handle a received notification."""

    def forward_notification(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """Send a notification of ``server`` to this end. about: see `write`; subscribed: whether it belongs
        to the subscription ``about``."""
        self.notify(method, params, about)

    # What we say

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        about: bytes | None = None,
        progress: Callable[[bytes], None] | None = None,
        origin: tuple[Party, bytes] | None = None,
    ) -> bytes:
        """Send a request and return its result. Raises RefusedError. about: see `write`; progress, origin:
        see `Sent`."""
        if progress is not None:
            params = with_progress_token(params, b"%d" % self.peer.next_id)
        try:
            number, line = self.peer.request(method, params)
        except PeerClosedError as error:
            raise GoneError(str(error)) from error
        sent = Sent(asyncio.get_running_loop().create_future(), progress, origin)
        self.sent[number] = sent
        try:
            self.write(line, about)
            return await sent.answer
        except asyncio.CancelledError as cancelled:
            reason = str(cancelled.args[0]) if cancelled.args else None
            if line := self.peer.cancel(number, reason) or b"":
                self.send_cancellation(number, line)
            raise
        finally:
            del self.sent[number]

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        """Send a notification. about: see `write`."""
        self.write(self.peer.notify(method, params), about)

    # What they say

    def received(self, data: bytes) -> None:
        """Handle received bytes; b"" is the end."""
        for event in self.peer.receive(data) if data else self.peer.eof():
            self.event(event)

    def event(self, event: Event) -> None:
        match event:
            case Request():
                self._begin(event)
            case Cancelled():
                if task := self.serving.get(event.id):
                    task.cancel(event.reason)
            case Notification():
                self.handle_notification(event.method, event.params)
            case Progress():
                if (sent := self.sent.get(event.id)) and sent.progress:
                    sent.progress(event.params)
            case Result():
                self.settle(event.id, event.result)
            case Error():
                self.fail(event.id, RefusedError(event.error))
            case Invalid():
                self.write(self.peer.error(event.id, event.code, event.message), event.id, last=True)
            case Closed():
                for number in event.ids:
                    self.fail(number, GoneError("It ended before it answered."))
            case _:
                pass  # junk, and answers to nothing

    def _begin(self, request: Request) -> None:
        task = self.serving[request.id] = self.run(self._serve(request))
        task.add_done_callback(lambda task: self._served(request.id, task))

    def settle(self, number: int, result: bytes) -> None:
        """Set the result of a sent request."""
        if not self.sent[number].answer.done():
            self.sent[number].answer.set_result(result)

    def fail(self, number: int, error: RefusedError) -> None:
        """Set the error of a sent request."""
        if not self.sent[number].answer.done():
            self.sent[number].answer.set_exception(error)

    def run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run a task; `close` cancels it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        """Cancel all running tasks."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, request: Request) -> None:
        line = b""
        try:
            line = self.peer.result(request.id, await self.handle_request(request))
        except RefusedError as refused:
            error = refused.error
            line = self.peer.error(request.id, error.code, error.message, error.data)
        except (NotAnObject, ValueError) as error:
            line = self.peer.error(request.id, INVALID_PARAMS, f"The params can't be read: {error}")
        except Exception:
            line = self.peer.error(request.id, INTERNAL_ERROR, "The relay has failed; its log says why.")
            raise
        finally:
            self.write(line, request.id, last=True)

    def _served(self, id: bytes, task: asyncio.Task[None]) -> None:
        if self.serving.get(id) is task:
            del self.serving[id]


async def pass_on(
    request: Request, source: Party, target: Party, params: bytes | None, about: bytes | None = None
) -> bytes:
    """Send the request ``source`` got to ``target``, with ``params``. Its progress is sent to ``source`` with
    the token of the original request. Raises RefusedError."""
    token = progress_token(params)

    def progress(notification: bytes) -> None:
        renamed = with_members(notification, {"progressToken": token or b"null"})
        source.notify("notifications/progress", renamed, request.id)

    callback = progress if token is not None else None
    return await target.request(
        request.method, params, about=about, progress=callback, origin=(source, request.id)
    )
