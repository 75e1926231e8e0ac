"""The answer to a JSON-RPC batch, which clients of 2025-03-26 may send (its `basic/index`, "Batching").

The rule: what its messages are answered with goes out as one array, in any order, once the last of them was;
a batch in which nothing was asked isn't answered.
"""

from collections.abc import Callable

from mcpzip.wire import INVALID_REQUEST, RpcError

NOT_IN_A_BATCH = RpcError(INVALID_REQUEST, "initialize is not part of a batch.")


class Gathering:
    """The answers to one batch. whole: is given their array, a line, or b"" where there are none."""

    def __init__(self, whole: Callable[[bytes], None]) -> None:
        self._whole = whole
        self._lines: list[bytes] = []
        self._awaited = 1

    def put(self, line: bytes) -> None:
        """An answer."""
        if line:
            self._lines.append(line.removesuffix(b"\n"))

    def awaits(self) -> None:
        """Something more is to end."""
        self._awaited += 1

    def ended(self, _: object = None) -> None:
        """Something has, the reading of the batch being the first."""
        self._awaited -= 1
        if not self._awaited:
            self._whole(b"[%b]\n" % b",".join(self._lines) if self._lines else b"")
