"""A connection of a client over HTTP that reads everything at once."""


class SentChannel:
    """A connection that keeps what is sent."""

    writable, mid_body = True, False

    def __init__(self) -> None:
        self.sent = b""

    def start(self, status: int, headers: object, body: bytes, *, more: bool) -> None:
        self.write(body, more=more)

    def write(self, body: bytes, *, more: bool) -> None:
        self.sent += body

    def hold_back(self, size: int) -> None: ...

    def failed(self, defect: Exception) -> None:
        raise defect
