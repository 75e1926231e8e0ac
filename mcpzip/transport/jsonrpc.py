"""A JSON-RPC connection with asyncio: our requests are futures, the server's requests are tasks.

The rule: all transports share it. It does no I/O: a transport passes in events and sends the messages that
come out. `wire.Peer` implements the protocol's rules.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from mcpzip.model import limits
from mcpzip.system.direct_steps import DirectFuture
from mcpzip.transport.base import ChannelClosedError, Incoming, Origin, ProgressSink
from mcpzip.wire import (
    INTERNAL_ERROR,
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    JsonRpcError,
    NotAMessage,
    Notification,
    Peer,
    Progress,
    Request,
    Result,
    Role,
    with_progress_token,
)

_TOO_MANY_REQUESTS = "There are too many requests under way."


class JsonRpcConnection:
    """Our end of a connection on which we are the client.

    gone: why the connection has ended; None while it is open. peer: the protocol's state.
    """

    def __init__(
        self,
        incoming: Incoming,
        send: Callable[[bytes], object],
        *,
        full: Callable[[], bool],
        junk: Callable[[bytes], None] = lambda data: None,
    ) -> None:
        """incoming: handles the server's notifications and requests. send: called with each of our responses,
        one line of bytes. full: tells whether too many responses are unsent; while it does, requests of the
        server are dropped unanswered. junk: called with input that is no JSON-RPC message.
        """
        self.peer = Peer(role=Role.CLIENT)
        self.gone: str | None = None
        self._incoming, self._send, self._full, self._junk = incoming, send, full, junk
        self._waiting: dict[int, DirectFuture[bytes]] = {}
        self._progress: dict[int, ProgressSink] = {}
        self._origins: dict[int, Origin] = {}
        self._answering: dict[bytes, asyncio.Task[None]] = {}

    @property
    def waits(self) -> bool:
        """Whether any request of ours is open."""
        return bool(self._waiting)

    def is_open(self, number: int) -> bool:
        """Whether our request ``number`` has neither a result nor an error yet."""
        answer = self._waiting.get(number)
        return answer is not None and not answer.done()

    def request(
        self,
        method: str,
        params: bytes | None,
        on_progress: ProgressSink | None,
        origin: Origin | None = None,
    ) -> tuple[int, bytes, "asyncio.Future[bytes]"]:
        """A new request: its number, its line, and the future of its result.

        on_progress: if given, the request carries a progress token of ours. origin: see `Channel.request`.
        The caller must call `forget` afterwards. Raises ChannelClosedError (sent=False) when the connection
        has ended.
        """
        if self.gone is not None:
            raise ChannelClosedError(self.gone, sent=False)
        if on_progress is not None:
            params = with_progress_token(params, b"%d" % self.peer.next_id)
        number, line = self.peer.request(method, params)
        answer = DirectFuture[bytes](loop=asyncio.get_running_loop())
        self._waiting[number] = answer
        if on_progress is not None:
            self._progress[number] = on_progress
        if origin is not None:
            self._origins[number] = origin
        return number, line, answer

    def forget(self, number: int) -> None:
        """Ends the request ``number`` for us; messages about it are dropped from now on."""
        self.peer.drop(number)
        self._progress.pop(number, None)
        self._origins.pop(number, None)
        answer = self._waiting.pop(number, None)
        if answer is None:
            return
        if not answer.done():
            answer.cancel()
        elif not answer.cancelled():
            answer.exception()  # the awaiting task may have been cancelled at the moment it failed

    def fail(self, number: int, error: Exception) -> None:
        """Fails the request ``number`` with ``error``, if it is still open."""
        self.peer.drop(number)
        answer = self._waiting.get(number)
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def received(self, event: Event, about: int | None = None, *, alone: bool = False) -> None:
        """Handles an event from the server. about: the request of ours that it is about; None where that
        isn't known. alone: whether nothing else came with it; if it is a result, whoever waits for that has
        taken it when this returns.
        """
        if (
            alone and isinstance(event, Result) and not self._answering
        ):  # what it asked before, it asked first
            answer = self._waiting.get(event.id)
            if answer is not None and not answer.done():
                answer.resolve_at_once(event.result)
            return
        origin = None if about is None else self._origins.get(about)
        match event:
            case Result(id=number, result=result):
                if (answer := self._waiting.get(number)) and not answer.done():
                    answer.set_result(result)
            case Error(id=number, error=error, ours=ours):
                unreadable = ChannelClosedError(error.message, sent=True, fatal=False)
                self.fail(number, unreadable if ours else JsonRpcError(error))
            case Progress(id=number, params=params):
                if sink := self._progress.get(number):
                    sink(params)
            case Notification(method=method, params=params):
                self._incoming.notified(method, params, origin)
            case Request(id=id_) if self.gone is not None or self._full():
                self.peer.error(id_, INTERNAL_ERROR, "")  # not sent: the server doesn't read its input
            case Request(id=id_) if len(self._answering) >= limits.ASKED:
                self._send(self.peer.error(id_, INTERNAL_ERROR, _TOO_MANY_REQUESTS))
            case Request(id=id_, method=method, params=params):
                task = asyncio.get_running_loop().create_task(self._answer(id_, method, params, origin))
                self._answering[id_] = task
                task.add_done_callback(partial(self._answered, id_))
            case Invalid(id=id_, code=code, message=message):
                line = self.peer.error(id_, code, message)
                if not self._full():
                    self._send(line)
            case NotAMessage(data=data):
                self._junk(data)
            case Closed(ids=ids):
                for number in ids:
                    self.fail(number, ChannelClosedError(self.gone or "it ended", sent=True))
            case Cancelled(id=id_):
                if task_ := self._answering.get(id_):
                    task_.cancel()
            case _:  # a late response, or one to an unknown request
                pass

    def end(self, reason: str) -> None:
        """Ends the connection and fails all open requests. Does nothing the second time."""
        if self.gone is not None:
            return
        self.gone = reason
        for task in self._answering.values():
            task.cancel()
        for event in self.peer.eof():
            if not isinstance(event, Error):  # it may come from a truncated line: the request counts as lost
                self.received(event)
        for number in list(self._waiting):
            self.fail(number, ChannelClosedError(reason, sent=True))
        self._incoming.ended(reason)

    async def _answer(self, id: bytes, method: str, params: bytes | None, origin: Origin | None) -> None:
        try:
            result = await self._incoming.asked(method, params, origin)
        except JsonRpcError as fault:
            error = fault.error
            line = self.peer.error(id, error.code, error.message, error.data, error.more)
        else:
            line = self.peer.result(id, result)
        if line:
            self._send(line)

    def _answered(self, id: bytes, task: "asyncio.Task[None]") -> None:
        if self._answering.get(id) is task:
            del self._answering[id]
