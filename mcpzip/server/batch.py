"""The response to a JSON-RPC batch, which clients of 2025-03-26 may send (its `basic/index`, "Batching").

The responses to its requests are sent as one array, in any order, once the last one is there. A batch without
requests has no response.
"""

from collections.abc import Callable

from mcpzip.wire import INVALID_REQUEST, RpcError

NOT_IN_A_BATCH = RpcError(INVALID_REQUEST, "initialize is not part of a batch.")


class BatchResponse:
    """The responses to one batch. send: is given their array, a line, or b"" where there are none."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._lines: list[bytes] = []
        self._under_way = 1

    def add(self, line: bytes) -> None:
        """Adds a response."""
        if line:
            self._lines.append(line.removesuffix(b"\n"))

    def expect(self) -> None:
        """One more request is under way."""
        self._under_way += 1

    def done(self, _: object = None) -> None:
        """A request has ended, or the batch has been read."""
        self._under_way -= 1
        if not self._under_way:
            self._send(b"[%b]\n" % b",".join(self._lines) if self._lines else b"")
