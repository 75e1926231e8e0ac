"""A raw JSON-RPC client over stdio.

The rule: it judges nothing and loses nothing. Every line both ways is in the transcript as it was; an answer
is given out as the JSON text it came in. What it can't do for the subject's sake it says as a `Finding`.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance.errors import Finding, GoneError, NoAnswerError
from conformance.processes import Process
from conformance.transcript import Transcript, printable
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    Error,
    Event,
    FrameTooLong,
    Junk,
    LineFramer,
    NotAnObject,
    Peer,
    Request,
    Result,
    Role,
    join_object,
    quote,
    split_object,
)

PATIENCE = 10.0
"""Seconds a client waits for an answer before it gives up, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request: ``result`` or ``error``, as JSON text; the other is None."""

    result: bytes | None = None
    error: bytes | None = None

    @property
    def text(self) -> str:
        """The text blocks of a tool's result, or the message of an error, a line each."""
        if self.result is None:
            return str(_decoded(self.error or b"{}").get("message", ""))
        content = _decoded(self.result).get("content")
        blocks = content if isinstance(content, list) else []
        return "\n".join(
            block["text"]
            for block in blocks
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        )

    @property
    def json(self) -> object:
        """What its text says, decoded; None when that is no JSON."""
        try:
            return msgspec.json.decode(self.text)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None

    @property
    def fields(self) -> dict[str, object]:
        """The result, decoded; {} for an error or a result that isn't an object."""
        return {} if self.result is None else _decoded(self.result)

    @property
    def code(self) -> object:
        """The error's code; None for a result."""
        return None if self.error is None else _decoded(self.error).get("code")

    @property
    def failed(self) -> bool:
        """Whether it says that the call went wrong: an error, or a result with ``isError``."""
        return self.error is not None or self.fields.get("isError") is True


class Client:
    """One process and the conversation with it. patience: seconds it waits for anything."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self.transcript = Transcript()
        self.junk: list[bytes] = []
        """Lines it wrote that are no messages."""
        self._peer = Peer(role=Role.CLIENT)
        self._framer = LineFramer()
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._news = asyncio.Event()
        self._lines: list[dict[str, bytes]] = []
        self._gone = False
        self.process: Process

    @classmethod
    async def start(
        cls, command: list[str], *, env: Mapping[str, str], cwd: Path, patience: float = PATIENCE
    ) -> "Client":
        """Start ``command``. Finding when it can't be started."""
        client = cls(patience)
        try:
            client.process = await Process.start(command, client._received, env=env, cwd=cwd)
        except OSError as error:
            raise Finding(f"{command[0]} can't be started: {error.strerror}.") from error
        return client

    async def request(self, method: str, params: bytes | None = None) -> Reply:
        """Ask, and wait for the answer. NoAnswerError, GoneError."""
        return await self.reply(self.send(method, params))

    def send(self, method: str, params: bytes | None = None) -> int:
        """Ask without waiting; the request's id, for `reply`."""
        number, line = self._peer.request(method, params)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.write(line)
        if self._gone:
            self._answers[number].set_exception(self._left())
        return number

    async def reply(self, number: int) -> Reply:
        """The answer to request ``number``. NoAnswerError, GoneError."""
        try:
            async with asyncio.timeout(self.patience):
                return await asyncio.shield(self._answers[number])
        except TimeoutError:
            raise self._too_late() from None

    def answered(self, number: int) -> bool:
        """Whether request ``number`` has its answer already."""
        return self._answers[number].done()

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Tell."""
        self.write(self._peer.notify(method, params))

    def write(self, line: bytes) -> None:
        """Send a line as it is; one without a newline gets it."""
        line = line.rstrip(b"\n")
        self.transcript.add(line, sent=True)
        self.process.write(line + b"\n")

    async def wait_for(self, wanted: Callable[[dict[str, bytes]], bool], since: int = 0) -> dict[str, bytes]:
        """The first message that came in, now or later, for which ``wanted`` holds: its members as JSON text.
        since: so many messages are passed over. NoAnswerError, GoneError."""
        try:
            async with asyncio.timeout(self.patience):
                while True:
                    for fields in self._lines[since:]:
                        if wanted(fields):
                            return fields
                    if self._gone:
                        raise self._left()
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise self._too_late() from None

    def messages(self) -> list[dict[str, bytes]]:
        """Every message that came in so far: its members as JSON text."""
        return list(self._lines)

    async def end(self, grace: float = 2.0) -> None:
        """Leave politely; see `Process.end`."""
        await self.process.end(grace)

    # Bytes in

    def _received(self, data: bytes) -> None:
        if not data:
            self._end()
            return
        for frame in self._framer.feed(data):
            if isinstance(frame, FrameTooLong):
                self.transcript.add(frame.head, sent=False)
                self.junk.append(frame.head)
            else:
                self._line(frame)
        self._news.set()

    def _line(self, line: bytes) -> None:
        self.transcript.add(line, sent=False)
        try:
            fields = split_object(line)
            self._lines.append(fields)
        except NotAnObject:
            fields = {}
        self._dispatch(self._peer.receive(line + b"\n"), fields)

    def _dispatch(self, events: list[Event], fields: dict[str, bytes]) -> None:
        for event in events:
            match event:
                case Result():
                    self._settle(event.id, Reply(result=event.result))
                case Error():
                    told = {"code": b"%d" % event.error.code, "message": quote(event.error.message)}
                    self._settle(event.id, Reply(error=fields.get("error") or join_object(told)))
                case Junk():
                    self.junk.append(event.data)
                case Request(method="ping"):
                    self.write(self._peer.result(event.id, b"{}"))
                case Request():
                    self.write(self._peer.error(event.id, METHOD_NOT_FOUND, "this client offers nothing"))
                case _:
                    pass  # it is in the transcript; what a check wants of it, it takes from there

    def _settle(self, number: int, reply: Reply) -> None:
        answer = self._answers[number]
        if not answer.done():
            answer.set_result(reply)

    def _end(self) -> None:
        self._gone = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._left())
                answer.exception()  # whether anybody waits for it is not the loop's concern
        self._news.set()

    def _too_late(self) -> NoAnswerError:
        return NoAnswerError(f"There was no answer within {self.patience:g} s.")

    def _left(self) -> GoneError:
        said = printable(self.process.stderr.decode("utf-8", "backslashreplace").strip()[-300:])
        return GoneError("It closed its output" + (f", saying: {said}" if said else "."))


def _decoded(raw: bytes) -> dict[str, object]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}
