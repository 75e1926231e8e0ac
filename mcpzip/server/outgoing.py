"""What goes out over HTTP, on its last step.

The rule: it is held back only as long as it isn't known what it will be: a plain body until it is whole, a
stream that was begun for an answer alone until its first event.
"""

from collections.abc import Callable

from starlette.types import Message, Send

from mcpzip.server.verbatim import Received, Seal

Header = tuple[bytes, bytes]


class Outgoing:
    """``send`` that puts messages in the place of their stand-ins.

    received: the request that is answered. may_change: whether a stream that was begun for its answer alone
    may become plain JSON. started: whether anything was sent; streams: whether it is an event stream. plain:
    ``send`` itself. headers: what every response has besides its own.
    """

    def __init__(self, send: Send, seal: Seal, longest_event: int, headers: tuple[Header, ...] = ()) -> None:
        self._send, self._seal, self._longest, self._headers = send, seal, longest_event, headers
        self._held: Message | None = None
        self._pieces: list[bytes] = []
        self._ended = False
        self.received: Received | None = None
        self.may_change = self.started = self.streams = False
        self.on_stream: Callable[[], None] = lambda: None

    async def plain(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message = {**message, "headers": [*message.get("headers", ()), *self._headers]}
        await self._send(message)

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kinds = dict(message.get("headers", ()))
            self.streams = kinds.get(b"content-type", b"").startswith(b"text/event-stream")
            self._held = message  # whether it fits isn't known yet
            if self.streams and not self.may_change:
                await self._begin()
                self.on_stream()
        elif self._ended:
            pass  # the end of a stream that was not needed
        elif self.streams:
            await self._stream(message)
        else:
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._whole(self._seal.body(b"".join(self._pieces), self.received))

    async def _begin(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            await self.plain(held)

    async def _stream(self, message: Message) -> None:
        body = message.get("body", b"")
        answer = self.received.answer if self.received else b""
        if self._held is not None and len(answer) > self._longest and self._seal.answers(body):
            await self._whole(answer, ((b"content-type", b"application/json"),))
            return
        await self._begin()
        await self.plain({**message, "body": self._seal.events(body, self.received)})

    async def _whole(self, body: bytes, changed: tuple[Header, ...] = ()) -> None:
        self._ended = True
        if self._held is not None:
            new = {**dict(changed), b"content-length": b"%d" % len(body)}
            kept = [header for header in self._held.get("headers", ()) if header[0] not in new]
            await self.plain({**self._held, "headers": [*kept, *new.items()]})
        await self.plain({"type": "http.response.body", "body": body, "more_body": False})
