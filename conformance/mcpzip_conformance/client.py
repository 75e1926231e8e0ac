"""A raw JSON-RPC client.

The rule: it judges nothing and loses nothing. Every message of both directions is in the transcript
unchanged; an answer is returned as the received JSON text. A failure of the subject is raised as a `Finding`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mcpzip.wire import (
    METHOD_NOT_FOUND,
    Error,
    Event,
    NotAMessage,
    NotAnObject,
    Peer,
    Request,
    Result,
    Role,
    join_object,
    quote,
    split_object,
)
from mcpzip_conformance.channel import Channel
from mcpzip_conformance.errors import GoneError, NoAnswerError
from mcpzip_conformance.processes import Process
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.transcript import Transcript

PATIENCE = 10.0
"""The default timeout of an answer, in seconds."""

T = TypeVar("T")
Fields = dict[str, bytes]
"""The members of a message, each as JSON text."""

Answer = Callable[[bytes], bytes | None]
"""A client's answer to a question: params in, result out, both JSON text; None doesn't answer yet. Raising
`RefusedError` answers with an error."""


class RefusedError(Exception):
    """Answers a question with an error. error: the error object as JSON text."""

    def __init__(self, error: bytes) -> None:
        self.error = error
        super().__init__(error)


class Client:
    """One conversation. patience: seconds to wait for any message; answers: by method, the answers to the
    server's requests (requests of other methods are refused); channel: the transport."""

    def __init__(self, patience: float = PATIENCE, answers: Mapping[str, Answer] | None = None) -> None:
        self.patience = patience
        self.answers = dict(answers or {})
        self.transcript = Transcript()
        self.junk: list[bytes] = []
        """Received lines that are no messages."""
        self.channel: Channel
        self._peer = Peer(role=Role.CLIENT)
        self._answers: dict[int, asyncio.Future[Reply]] = {}
        self._methods: dict[int, str] = {}
        self._news = asyncio.Event()
        self._lines: list[Fields] = []
        self._gone = False

    @property
    def process(self) -> Process:
        """The process at the other end of the channel."""
        return self.channel.process

    async def request(self, method: str, params: bytes | None = None) -> Reply:
        """Send a request and wait for the answer. Raises NoAnswerError, GoneError."""
        return await self.reply(self.send(method, params))

    def send(self, method: str, params: bytes | None = None) -> int:
        """Send a request without waiting. Returns its id, for `reply`."""
        number, line = self._peer.request(method, params)
        self._methods[number] = method
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.write(line)
        if self._gone:
            self._answers[number].set_exception(self._left())
        return number

    async def reply(self, number: int, patience: float | None = None) -> Reply:
        """The answer to request ``number``. patience: seconds, instead of the client's own. Raises
        NoAnswerError, GoneError."""
        seconds = patience or self.patience
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._answers[number])
        except TimeoutError:
            method = self._methods.get(number, "the request")
            # What it wrote to stderr tells why, if it never said anything else.
            said = "." if any(map(asyncio.Future.done, self._answers.values())) else self.channel.last_words()
            raise NoAnswerError(f"There was no answer to {method} within {seconds:g} s{said}") from None

    def answered(self, number: int) -> bool:
        """Whether request ``number`` has its answer already."""
        return self._answers[number].done()

    def cancel(self, number: int, reason: str = "not needed any more") -> None:
        """Cancel request ``number``, as the transport and the era define it."""
        params = join_object({"requestId": b"%d" % number, "reason": quote(reason)})
        notification = self._peer.notify("notifications/cancelled", params).rstrip(b"\n")
        if self.channel.cancel(b"%d" % number, notification):
            self.transcript.add(notification, sent=True)

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification."""
        self.write(self._peer.notify(method, params))

    def write(self, line: bytes) -> None:
        """Send a message as it is."""
        line = line.rstrip(b"\n")
        self.transcript.add(line, sent=True)
        self.channel.write(line)

    def answer(self, question: Fields, result: bytes) -> None:
        """Answer an open question, unless it was cancelled. question: its members, result: JSON text."""
        if line := self._peer.result(question["id"], result):
            self.write(line)

    async def wait_for(self, wanted: Callable[[Fields], bool], since: int = 0) -> Fields:
        """The first message, received or future, for which ``wanted`` is true: its members as JSON text.
        since: the number of messages to skip. Raises NoAnswerError, GoneError."""

        def first(messages: Sequence[Fields]) -> Fields | None:
            return next((fields for fields in messages[since:] if wanted(fields)), None)

        return await self.until(first)

    async def until(self, wanted: Callable[[Sequence[Fields]], T | None]) -> T:
        """The result of ``wanted`` for all received messages, as soon as it is true: each message by its
        members as JSON text. Raises NoAnswerError, GoneError."""
        try:
            async with asyncio.timeout(self.patience):
                while not (found := wanted(self._lines)):
                    if self._gone:
                        raise self._left()
                    self._news.clear()
                    await self._news.wait()
                return found
        except TimeoutError:
            raise NoAnswerError(f"The message waited for did not come within {self.patience:g} s.") from None

    def messages(self, method: str | None = None) -> list[Fields]:
        """Every received message, or those of one method: their members as JSON text."""
        wanted = None if method is None else quote(method)
        return [fields for fields in self._lines if wanted is None or fields.get("method") == wanted]

    @property
    def next_id(self) -> int:
        """The id of its next request."""
        return self._peer.next_id

    def pause(self) -> None:
        """Read nothing more."""
        self.channel.pause()

    async def leave(self) -> None:
        """Leave in the orderly way of the transport."""
        await self.channel.leave()

    async def crash(self) -> None:
        """Leave as in a crash."""
        await self.channel.crash()

    async def end(self, grace: float = 2.0) -> None:
        """End the process; see `Process.end`."""
        await self.channel.end(grace)

    # The channel's side: see `mcpzip_conformance.channel.Sink`

    def line(self, raw: bytes) -> None:
        self.transcript.add(raw, sent=False)
        try:
            fields = split_object(raw)
            self._lines.append(fields)
        except NotAnObject:
            fields = {}
        self._dispatch(self._peer.receive(raw + b"\n"), fields)
        self._news.set()

    def refused(self, id: bytes, why: str, error: bytes | None) -> None:
        error_object = error or join_object({"code": b"0", "message": quote(why)})
        if id.isdigit() and int(id) in self._answers:
            self._settle(int(id), Reply(error=error_object))

    def remark(self, text: str) -> None:
        self.transcript.remark(text)

    def ended(self) -> None:
        self._gone = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._left())
                answer.exception()  # marks it as retrieved: asyncio doesn't warn if nobody waits for it
        self._news.set()

    def _dispatch(self, events: list[Event], fields: Fields) -> None:
        for event in events:
            match event:
                case Result():
                    self._settle(event.id, Reply(result=event.result))
                case Error():
                    told = {"code": b"%d" % event.error.code, "message": quote(event.error.message)}
                    self._settle(event.id, Reply(error=fields.get("error") or join_object(told)))
                case NotAMessage():
                    self.junk.append(event.data)
                case Request():
                    self._handle_request(event)
                case _:
                    pass  # it is in the transcript, where checks find it

    def _handle_request(self, question: Request) -> None:
        if question.method == "ping":
            self.write(self._peer.result(question.id, b"{}"))
        elif question.method in self.answers:
            try:
                result = self.answers[question.method](question.params or b"{}")
            except RefusedError as refused:
                self.write(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (question.id, refused.error))
                return
            if result is not None:
                self.write(self._peer.result(question.id, result))
        else:
            self.write(self._peer.error(question.id, METHOD_NOT_FOUND, f"{question.method} is not offered"))

    def _settle(self, number: int, reply: Reply) -> None:
        answer = self._answers[number]
        if not answer.done():
            answer.set_result(reply)

    def _left(self) -> GoneError:
        return GoneError(f"It closed its output{self.channel.last_words()}")
