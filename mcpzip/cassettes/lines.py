"""Splits what passes into lines, exactly as they are (sans I/O)."""

from mcpzip.model.limits import MESSAGE


class Lines:
    """The lines of one stream, without their newlines; a carriage return stays. too_long: how many lines were
    left out because they have more than ``most`` bytes.
    """

    def __init__(self, most: int = MESSAGE) -> None:
        self.too_long = 0
        self._most = most
        self._rest = bytearray()
        self._drops = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        for end in ends:
            self._buffer(end)
            if not self._drops:
                lines.append(bytes(self._rest))
            self._rest, self._drops = bytearray(), False
        self._buffer(rest)
        return lines

    def end(self) -> bytes:
        """The unfinished last line."""
        return bytes(self._rest)

    def _buffer(self, part: bytes) -> None:
        if self._drops:
            return
        self._rest += part
        if len(self._rest) > self._most:
            self._rest, self._drops = bytearray(), True
            self.too_long += 1
