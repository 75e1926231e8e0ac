"""Our requests to a client, and the futures that wait for its responses."""

import asyncio
from collections.abc import Callable

import msgspec

from mcpzip.wire import (
    INVALID_REQUEST,
    Error,
    JsonRpcError,
    Peer,
    PeerClosedError,
    Result,
    RpcError,
)

Send = Callable[[bytes], None]
"""Sends frames to the client, in order."""

CLIENT_STALLED = RpcError(INVALID_REQUEST, "The client does not read what it is told.")
_GONE = RpcError(INVALID_REQUEST, "The client has gone.")


class _Pending(msgspec.Struct, frozen=True, eq=False):
    frame: bytes
    send: Send
    answer: "asyncio.Future[bytes]"


class ClientRequests:
    """Requests to one client, all under ids of one ``peer``."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._pending: dict[int, _Pending] = {}

    async def request(
        self, send: Send, method: str, params: bytes | None, send_cancellation: Send | None = None
    ) -> bytes:
        """See `proxy.exchange.Ask`. send: sends the request; send_cancellation: sends that no response is
        wanted any more (default: ``send``).
        """
        try:
            number, frame = self._peer.request(method, params)
        except PeerClosedError:
            raise JsonRpcError(_GONE) from None
        pending = self._pending[number] = _Pending(frame, send, asyncio.get_running_loop().create_future())
        send(frame)
        try:
            return await pending.answer
        except asyncio.CancelledError:
            if withdrawal := self._peer.cancel(number):
                (send_cancellation or send)(withdrawal)
            raise
        finally:
            self._peer.cancel(number)
            del self._pending[number]

    def responded(self, response: Result | Error) -> None:
        """The client has sent a response."""
        pending = self._pending.get(response.id)
        if pending is None or pending.answer.done():
            return
        if isinstance(response, Result):
            pending.answer.set_result(response.result)
        else:
            pending.answer.set_exception(JsonRpcError(response.error))

    def unanswered(self, send: Send) -> list[bytes]:
        """The frames that were sent by ``send`` and have no response, oldest first."""
        return [
            pending.frame
            for pending in self._pending.values()
            if pending.send == send and not pending.answer.done()
        ]

    def end(self, send: Send | None = None) -> None:
        """What was sent by ``send``, None for anything, will have no response: it fails."""
        for pending in self._pending.values():
            if send in (None, pending.send) and not pending.answer.done():
                pending.answer.set_exception(JsonRpcError(_GONE))
