"""What we answer a server, on its way through the SDK.

The SDK sends one message after another, and waits for what HTTP makes of each. The rule: it is known how many
answers wait, so that a server which asks and takes no answer is not heard for ever.
"""

from types import TracebackType
from typing import Self

from mcp.shared._stream_protocols import WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse


class Answers:
    """``inner``, from which the SDK's transport sends. waiting: how many answers aren't sent yet."""

    def __init__(self, inner: WriteStream[SessionMessage]) -> None:
        self._inner = inner
        self.waiting = 0

    async def send(self, item: SessionMessage, /) -> None:
        """Waits until the transport takes it."""
        answer = isinstance(item.message, JSONRPCResponse | JSONRPCError)
        self.waiting += answer
        try:
            await self._inner.send(item)
        finally:
            self.waiting -= answer

    async def aclose(self) -> None:
        """Ends the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()
