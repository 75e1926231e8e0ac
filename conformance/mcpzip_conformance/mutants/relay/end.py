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
        home: "tuple[Party, bytes] | None" = None,
    ) -> bytes:
        """See `End.request`."""

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        """See `End.notify`."""

    def heard(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """See `End.heard`."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of ours. progress: who hears of it; home: for whom it is: the one that was asked, and its
    request's id."""

    answer: asyncio.Future[bytes]
    progress: Callable[[bytes], None] | None
    home: tuple[Party, bytes] | None


class End(ABC):
    """See the rule. A subclass sends (`write`) and says what is answered (`asked`) and heard (`told`)."""

    def __init__(self, role: Role) -> None:
        self.peer = Peer(role=role)
        self.sent: dict[int, Sent] = {}
        self.serving: dict[bytes, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def write(self, line: bytes, about: bytes | None, *, last: bool = False) -> None:
        """Send. about: the id of their request that the line belongs to; last: nothing more will belong to
        it; an empty ``line`` says only that."""

    def take_back(self, number: int, line: bytes) -> None:
        """Send the cancellation of our request."""
        self.write(line, None)

    @abstractmethod
    async def asked(self, request: Request) -> bytes:
        """The answer to a request of theirs. RefusedError."""

    @abstractmethod
    def told(self, method: str, params: bytes | None) -> None:
        """A notification."""

    def heard(
        self, server: str, method: str, params: bytes | None, about: bytes | None, *, subscribed: bool
    ) -> None:
        """What ``server`` has told, and is for this end. about: see `write`; subscribed: it is about the
        subscription ``about``."""
        self.notify(method, params, about)

    # What we say

    async def request(
        self,
        method: str,
        params: bytes | None = None,
        *,
        about: bytes | None = None,
        progress: Callable[[bytes], None] | None = None,
        home: tuple[Party, bytes] | None = None,
    ) -> bytes:
        """The result. RefusedError. about: see `write`; progress, home: see `Sent`."""
        if progress is not None:
            params = with_progress_token(params, b"%d" % self.peer.next_id)
        try:
            number, line = self.peer.request(method, params)
        except PeerClosedError as error:
            raise GoneError(str(error)) from error
        sent = Sent(asyncio.get_running_loop().create_future(), progress, home)
        self.sent[number] = sent
        try:
            self.write(line, about)
            return await sent.answer
        except asyncio.CancelledError as cancelled:
            reason = str(cancelled.args[0]) if cancelled.args else None
            if line := self.peer.cancel(number, reason) or b"":
                self.take_back(number, line)
            raise
        finally:
            del self.sent[number]

    def notify(self, method: str, params: bytes | None = None, about: bytes | None = None) -> None:
        """Tell. about: see `write`."""
        self.write(self.peer.notify(method, params), about)

    # What they say

    def received(self, data: bytes) -> None:
        """Bytes of theirs; b"" is the end."""
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
                self.told(event.method, event.params)
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
        """Our request has this result."""
        if not self.sent[number].answer.done():
            self.sent[number].answer.set_result(result)

    def fail(self, number: int, error: RefusedError) -> None:
        """Our request has failed."""
        if not self.sent[number].answer.done():
            self.sent[number].answer.set_exception(error)

    def run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Do something meanwhile; it is cancelled by `close`."""
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
            line = self.peer.result(request.id, await self.asked(request))
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
    """Ask ``target`` what ``source`` was asked, with ``params``. Progress comes back under the token that the
    request came with. RefusedError."""
    token = progress_token(params)

    def progress(said: bytes) -> None:
        renamed = with_members(said, {"progressToken": token or b"null"})
        source.notify("notifications/progress", renamed, request.id)

    heard = progress if token is not None else None
    return await target.request(
        request.method, params, about=about, progress=heard, home=(source, request.id)
    )
