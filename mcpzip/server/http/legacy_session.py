"""One client of the legacy era over HTTP: what it asks, is asked and is told, and the streams on which it is.

The rules: a client that hangs up has cancelled nothing, and what it asked goes on for some minutes; it may
come back for the stream of an answer if it knows an id on it, and is asked nothing more on any other; an id
is in use until its request is answered.
"""

import asyncio
import math
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain

from mcpzip.proxy.exchange import Ask, Client, Exchange, Tell
from mcpzip.proxy.workers import Asker
from mcpzip.server.batch import Gathering
from mcpzip.server.endpoint import BUSY, Endpoint
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.outbox import Answer, Outbox, Room
from mcpzip.server.http.reply import Receive, Reply, error_message
from mcpzip.server.http.track import UNBEGUN, UNTRACKED, Track, Tracks
from mcpzip.server.http.work import Outcome, Work
from mcpzip.server.questions import NOT_READ, Questions
from mcpzip.transport.base import RpcFaultError
from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    Batch,
    Cancelled,
    Era,
    Error,
    Event,
    Invalid,
    Notification,
    Peer,
    Request,
    Result,
    RpcError,
)

STREAM_TIME = 5.0
"""Seconds a client may take to open the stream on which it is to be asked something outside its requests."""

_NO_STREAM = RpcError(INVALID_REQUEST, "The client has no stream open on which it could be asked.")
_BEGUN = RpcError(INVALID_REQUEST, "The session has begun already; a new one begins without Mcp-Session-Id.")
_NO_OBJECT = RpcError(INVALID_PARAMS, "params is an object")
_NOT_KEPT = RpcError(INTERNAL_ERROR, "The answer was too long to be kept for a client that had hung up.")
_WITHDRAWN = "The request was cancelled."
_UNHEARD = "The client hung up long ago."
_ENDED = "The session has ended."


class _Call:
    """A request under way, or one whose answer may be resumed. batch: what it is answered in, if it came in
    one; track: its stream, if that has ids; reply: on which it is answered; withdrawn: why it was cancelled,
    if it was; clocks: what ends it, and what is asked in it, after its client hung up.
    """

    def __init__(self, id: bytes, outbox: Outbox, batch: Gathering | None = None) -> None:
        self.id, self.outbox, self.batch = id, outbox, batch
        self.track: Track | None = None
        self.reply: Reply | None = None
        self.withdrawn: str | None = None
        self.cancel: Callable[[], object] = lambda: None
        self.clocks: list[asyncio.TimerHandle] = []

    @property
    def resumable(self) -> bool:
        """Whether its client may come back for its answer."""
        return self.track is not None and self.track.resumable

    def let_go(self) -> None:
        """Lets go of its answer, if that was said."""
        if self.track is not None and self.track.over:
            self.cancel = lambda: None
            self.outbox.answer = None
            self.outbox.close()

    def end_clocks(self) -> None:
        """It ends by itself, or its client is back."""
        for clock in self.clocks:
            clock.cancel()
        self.clocks.clear()


class LegacySession:
    """One client. id: its Mcp-Session-Id; listens: set while it has its own stream open; uses: HTTP requests
    of it that are open; began: whether its `initialize` was answered; did_something: whether it asked
    anything after that; address: of whom it came from; last_used: when there was one, by the loop's clock;
    clock: what ends it then.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        work: Work,
        peer: Peer,
        limits: Limits,
        room: Room,
        address: str = "",
        tracks: Tracks | None = None,
    ) -> None:
        """tracks: the streams that can be resumed, where its client knows how."""
        self.id, self.address = secrets.token_hex(16), address
        self.client = Client(Era.LEGACY)
        self.listens = asyncio.Event()
        self.uses = 0
        self.last_used = 0.0
        self.did_something = self.began = False
        self.clock: asyncio.TimerHandle | None = None
        self._endpoint, self._work, self._peer, self._limits = endpoint, work, peer, limits
        self._questions = Questions(peer)
        self._calls: dict[bytes, _Call] = {}
        self._tracks = tracks
        self._room, self._outbox = room, Outbox(room)
        self.client.tell = self._telling(self._outbox)
        self.client.ask = self._asking(self._outbox, self.listens)

    @property
    def busy(self) -> bool:
        """Whether a request of it is under way."""
        return bool(self._calls)

    @property
    def used_until(self) -> float:
        """When it was last used; the end of time while it is."""
        return math.inf if self.uses or self.busy else self.last_used

    async def post(self, body: bytes, reply: Reply, receive: Receive) -> None:
        """Answers a message of the client."""
        match event := self._peer.message(body):
            case Request(id=id, params=params) if params is not None and not params.startswith(b"{"):
                await self._refuse(id, _NO_OBJECT, reply, 400)
            case Request(id=id) if error := self._refusal(event):
                await self._refuse(id, error, reply)
            case Request():
                self.did_something = True
                await self.answer(event, reply, receive)
            case Batch(events=events):
                await self._answer_all(events, reply, receive)
            case Invalid(id=id, code=code, message=message):
                await reply.json(self._peer.error(id, code, message), 400)
            case _:
                self._take(event)
                await reply.empty(202)

    def _refusal(self, request: Request) -> RpcError | None:
        if request.method == "initialize":
            return _BEGUN
        # A ping asks whether we are there; that takes no time.
        full = self._work.full if request.method == "ping" else self._work.full_for(self.id)
        return BUSY if full else None

    async def _answer_all(self, events: Sequence[Event], reply: Reply, receive: Receive) -> None:
        """Answers a batch: on one stream, in the end by one array."""
        outbox, calls = Outbox(self._room), list[_Call]()
        answers = Gathering(lambda line: outbox.finish(Answer(line)) if line else None)
        for event in events:
            match event:
                case Request(id=id, params=params) if params is not None and not params.startswith(b"{"):
                    answers.put(self._peer.error(id, _NO_OBJECT.code, _NO_OBJECT.message))
                case Request(id=id) if error := self._refusal(event):
                    answers.put(self._peer.error(id, error.code, error.message))
                case Request():
                    answers.awaits()
                    calls.append(_Call(event.id, outbox, answers))
                    self._begin(calls[-1], event)
                case Invalid(id=id, code=code, message=message):
                    answers.put(self._peer.error(id, code, message))
                case _:
                    self._take(event)
        answers.ended()
        if outbox.answer is None and not calls:
            await reply.empty(202)
            return
        self.did_something = True
        delivered = False
        try:
            delivered = await reply.deliver(outbox, receive, self._limits.event)
        finally:
            if not delivered:
                for call in calls:
                    self._hung_up(call)

    async def answer(self, request: Request, reply: Reply, receive: Receive) -> bool:
        """Answers a request. Returns whether the client got a result; one that left gets no more of it."""
        call = _Call(request.id, Outbox(self._room))
        if self._tracks is not None and request.method != "initialize":  # whose client knows no session yet
            call.track = self._tracks.new(call)
        self._begin(call, request)
        outbox = call.outbox
        delivered = await self._deliver(call, reply, receive)
        succeeded = delivered and outbox.answer is not None and not outbox.answer.failed
        call.let_go()
        self.began = self.began or succeeded
        return succeeded

    def _begin(self, call: _Call, request: Request) -> None:
        self._calls[call.id] = call
        client, outbox = self.client, call.outbox
        exchange = Exchange(
            client,
            request.id,
            request.params,
            self._telling(outbox),
            self._asking(outbox),
            client.capabilities,
            client.log_level,
        )
        work = self._endpoint.answer(request.method, exchange)
        asker = Asker(self.id, lambda: outbox.closed)
        call.cancel = self._work.answer(work, partial(self._settled, call), asker).cancel

    async def resume(self, event_id: str, reply: Reply, receive: Receive) -> bool:
        """Goes on with the stream of a request behind an event of it. Returns whether it is known."""
        found = self._tracks and self._tracks.at(event_id)
        if not found:
            return False
        track, number = found
        call = track.owner
        assert isinstance(call, _Call), "streams of requests are what is tracked"
        call.end_clocks()
        if track.lost_after(number):
            frames = self._questions.unanswered(call.outbox.put)
            call.outbox.repeat([frame for frame in frames if not track.keeps(frame)])
        await self._deliver(call, reply, receive, number)
        call.let_go()
        return True

    async def _deliver(self, call: _Call, reply: Reply, receive: Receive, behind: int | None = None) -> bool:
        """Answers ``call`` on ``reply``, behind an event where it is resumed. False when the client left
        before.
        """
        call.reply, outbox, track = reply, call.outbox, call.track
        outbox.read_by(reply)
        delivered = False
        try:
            if track is not None and behind is not None:
                await reply.say_again(track, behind, error_message(_NOT_KEPT, call.id))
            if track is not None and track.over:
                await reply.end()
                delivered = True
            else:
                # What isn't answered yet may fail, and who began in vain is given no session.
                plain = UNTRACKED if self.began else UNBEGUN
                delivered = await reply.deliver(outbox, receive, self._limits.event, track or plain)
        finally:
            if call.reply is reply:
                call.reply = outbox.reader = None
                if not delivered:
                    self._hung_up(call)
        return delivered

    def _hung_up(self, call: _Call) -> None:
        loop, limits = asyncio.get_running_loop(), self._limits
        if call.resumable:
            call.clocks.append(loop.call_later(limits.away, self._unheeded, call))
            self._keep(call)
        else:
            self._unheeded(call)
            call.outbox.close()
        if self._calls.get(call.id) is call:  # nobody may hear of it
            call.clocks.append(loop.call_later(limits.unheard, self._give_up, call))

    def _unheeded(self, call: _Call) -> None:
        call.outbox.unheeded = True
        self._questions.end(call.outbox.put)

    def _keep(self, call: _Call) -> None:
        """Has the rest of an answer be kept for a client that may come back."""
        track, outbox = call.track, call.outbox
        if track is not None and not track.over and outbox.answer is not None:
            for line in chain.from_iterable(iter(outbox.take, [])):
                track.event(line)
            track.event(outbox.answer.line, last=True)
            call.let_go()

    async def _refuse(self, id: bytes, error: RpcError, reply: Reply, status: int = 200) -> None:
        await reply.json(self._peer.error(id, error.code, error.message), status)

    async def listen(self, reply: Reply, receive: Receive) -> None:
        """Says what concerns no request, until the client leaves or the session ends."""
        self.listens.set()
        self.did_something = True
        try:
            await reply.stream()
            # What was asked on the stream before, and not answered, may have been lost with it.
            self._outbox.repeat(self._questions.unanswered(self._outbox.put))
            await reply.deliver(self._outbox, receive)
        finally:
            self.listens.clear()

    def end(self) -> None:
        """The client is gone."""
        if self.clock is not None:
            self.clock.cancel()
        self._peer.eof()
        self._questions.end()
        for call in list(self._calls.values()):
            self._withdraw(call, _ENDED)
        self._outbox.close()
        if self._tracks is not None:
            self._tracks.end()

    def _take(self, event: Event) -> None:
        match event:
            case Result() | Error():
                self._questions.answered(event)
            case Cancelled(id=id):
                if call := self._calls.get(id):
                    self._withdraw(call, _WITHDRAWN)
            case Notification(method=method, params=params):
                if self._work.crowded:
                    return
                if work := self._endpoint.notified(self.client, method, params):
                    self._work.aside(work)
            case _:
                pass  # progress, or an answer nobody waits for

    def _give_up(self, call: _Call) -> None:
        self._peer.error(call.id, REQUEST_CANCELLED, _UNHEARD)  # it is answered, though nobody hears of it
        self._withdraw(call, _UNHEARD)

    def _withdraw(self, call: _Call, reason: str) -> None:
        del self._calls[call.id]  # whose id is free from now on
        call.end_clocks()
        call.withdrawn = reason
        call.cancel()

    def _settled(self, call: _Call, outcome: Outcome) -> None:
        call.end_clocks()
        if self._calls.get(call.id) is call:
            del self._calls[call.id]
        if call.withdrawn is not None:
            # A response has to be something, though the specification wants no answer to a cancelled request.
            outcome = RpcError(REQUEST_CANCELLED, call.withdrawn)
            line = error_message(outcome, call.id)
        elif isinstance(outcome, RpcError):
            line = self._peer.error(call.id, outcome.code, outcome.message, outcome.data, outcome.more)
        else:
            line = self._peer.result(call.id, outcome)
        if call.batch is not None:
            call.batch.put(line)
            call.batch.ended()
            return
        call.outbox.finish(Answer(line, failed=isinstance(outcome, RpcError)))
        if call.outbox.reader is None:
            self._keep(call)

    def _telling(self, outbox: Outbox) -> Tell:
        return lambda method, params: outbox.tell(self._peer.notify(method, params))

    def _asking(self, outbox: Outbox, open: asyncio.Event | None = None) -> Ask:
        def take_back(line: bytes) -> None:
            # The stream of a call ends with its answer, which the question may outlive.
            if outbox.open:
                outbox.put(line)
            else:
                self._outbox.tell(line)

        async def ask(method: str, params: bytes | None) -> bytes:
            if open is not None:
                await _opened(open)
            if not outbox.open or outbox.unheeded:
                raise RpcFaultError(_NO_STREAM)
            if outbox.full:
                raise RpcFaultError(NOT_READ)
            return await self._questions.ask(outbox.put, method, params, take_back)

        return ask


async def _opened(stream: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(STREAM_TIME):
            await stream.wait()
    except TimeoutError:
        raise RpcFaultError(_NO_STREAM) from None
