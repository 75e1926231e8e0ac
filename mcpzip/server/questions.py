"""What a client is asked, and who waits for its answers: futures of asyncio, no I/O."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from mcpzip.transport.base import RpcFaultError
from mcpzip.wire import INVALID_REQUEST, Error, Peer, PeerClosedError, Result, RpcError

Say = Callable[[bytes], None]
"""Takes frames for the client, in order."""

NOT_READ = RpcError(INVALID_REQUEST, "The client does not read what it is told.")
_GONE = RpcError(INVALID_REQUEST, "The client has gone.")


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    frame: bytes
    say: Say
    answer: "asyncio.Future[bytes]"


class Questions:
    """Requests to one client, all under ids of one ``peer``."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._open: dict[int, _Question] = {}

    async def ask(self, say: Say, method: str, params: bytes | None, take_back: Say | None = None) -> bytes:
        """See `proxy.exchange.Ask`. say: where it is asked. take_back: where it is said that no answer is
        wanted any more (default: as ``say``).
        """
        try:
            number, frame = self._peer.request(method, params)
        except PeerClosedError:
            raise RpcFaultError(_GONE) from None
        asked = self._open[number] = _Question(frame, say, asyncio.get_running_loop().create_future())
        say(frame)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            if withdrawal := self._peer.cancel(number):
                (take_back or say)(withdrawal)
            raise
        finally:
            self._peer.cancel(number)
            del self._open[number]

    def answered(self, said: Result | Error) -> None:
        """The client has answered."""
        asked = self._open.get(said.id)
        if asked is None or asked.answer.done():
            return
        if isinstance(said, Result):
            asked.answer.set_result(said.result)
        else:
            asked.answer.set_exception(RpcFaultError(said.error))

    def unanswered(self, where: Say) -> list[bytes]:
        """The frames of what was asked ``where``, oldest first."""
        return [
            asked.frame for asked in self._open.values() if asked.say == where and not asked.answer.done()
        ]

    def end(self, where: Say | None = None) -> None:
        """What was asked ``where``, None for anywhere, will not be answered."""
        for asked in self._open.values():
            if where in (None, asked.say) and not asked.answer.done():
                asked.answer.set_exception(RpcFaultError(_GONE))
