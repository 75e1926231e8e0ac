"""A request of a client from the moment it is made to its answer: passes on the notifications that the server
sends during it, and its progress under the client's own token.

The rule: what may happen to a call, and in which order, is in `call_states`; here is what is done then.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Coroutine, Mapping
from itertools import count

import msgspec

from mcpzip.config import Config
from mcpzip.proxy import call_record as noted
from mcpzip.proxy.call_record import CallRecord, note
from mcpzip.proxy.call_states import TRANSITIONS, Event, IllegalEventError, State
from mcpzip.proxy.client_capabilities import CapabilityPath, has_capability, required_capability
from mcpzip.proxy.exchange import Exchange, SendRequest
from mcpzip.proxy.log_levels import is_wanted
from mcpzip.system.tasks import retrieve_exception
from mcpzip.wire import (
    METHOD_NOT_FOUND,
    REQUEST_KEYS,
    Era,
    JsonRpcError,
    NotAnObject,
    RpcError,
    join_object,
    unquote,
    with_members,
)

_HOP_BY_HOP = ("progressToken", *REQUEST_KEYS)
"""Keys of ``_meta`` between the client and us: the upstream gets our own."""
_CALL = ("name", "arguments")
_NOT_OFFERED = "The client does not offer"
_NOTED = {
    Event.SEND: noted.CONNECTING,
    Event.RESULT: noted.ANSWERED,
    Event.LOSS: noted.LOST,
    Event.INPUT_REQUIRED: noted.INPUT_REQUIRED,
    Event.PARK: noted.PARKED,
    Event.RESUME: noted.RESUMED,
    Event.ABANDON: noted.ABANDONED,
}
"""What is remembered of changes of the state. Questions are noted where they are asked."""


class UpstreamRequest(msgspec.Struct, frozen=True):
    """What to ask of an upstream.

    fields: the members of its params but ``_meta``, each as JSON text. timeout: seconds. repeatable: twice
    does no harm. definition: of the tool that is called. check: called before each time that it is sent;
    raises what keeps it from being sent.
    """

    server: str
    method: str
    fields: dict[str, bytes]
    timeout: float
    repeatable: bool = False
    definition: bytes | None = None
    check: Callable[[], None] | None = None

    @property
    def tool(self) -> str:
        """The name of the tool that is called; "" if none is."""
        name = self.fields.get("name", b"") if self.method == "tools/call" else b""
        try:
            return unquote(name)
        except ValueError:
            return ""

    def params(self, meta: Mapping[str, bytes]) -> bytes:
        """The params, with those members of the client's ``_meta`` that are meant for the upstream."""
        fields = self.fields
        kept = {key: value for key, value in meta.items() if key not in _HOP_BY_HOP} if meta else {}
        if kept:
            return join_object({**fields, "_meta": join_object(kept)})
        if (*fields,) == _CALL:  # which is usual
            return b'{"name":%b,"arguments":%b}' % (fields["name"], fields["arguments"])
        return join_object(fields)

    def same(self, other: "UpstreamRequest") -> bool:
        """Whether ``other`` is it, asked again; the order of members and the spacing mean nothing."""
        if (self.server, self.method) != (other.server, other.method):
            return False
        if self.fields == other.fields:
            return True
        known = _canonical(self.fields)
        return known is not None and known == _canonical(other.fields)


def timeout_of(config: Config, server: str) -> float:
    """Seconds that a request to ``server`` may take, by the config."""
    configured = config.servers.get(server)  # None if it was removed since the call began
    return (configured.timeout if configured else None) or config.call_timeout


class CallEndedError(Exception):
    """The call that a question was taken to be of has ended without an answer to it."""


class ServerRequest(msgspec.Struct, frozen=True):
    """What an upstream wants to know in the middle of a call, and where the answer goes."""

    method: str
    params: bytes | None
    answer: "asyncio.Future[bytes]"


class Call:
    """A call of a legacy client. exchange: the client's open request for it, None while it is parked. record:
    what is remembered of it, None for nothing.
    """

    transitions = TRANSITIONS[Era.LEGACY]

    def __init__(self, exchange: Exchange, request: UpstreamRequest) -> None:
        self.exchange: Exchange | None = exchange
        self.request = request
        self.record: CallRecord | None = exchange.record
        self.client = exchange.client
        self.capabilities = exchange.capabilities
        self.state = State.ASKED

    def happens(self, event: Event) -> None:
        """Changes the state. Raises IllegalEventError."""
        try:
            self.state = self.transitions[self.state][event]
        except KeyError:
            raise IllegalEventError(self.state, event) from None
        if self.record is not None and (what := _NOTED.get(event)) is not None:
            self.record.note(what)

    def ends(self, event: Event) -> None:
        """It is under way upstream no more, by RESULT or LOSS."""
        self.happens(event)

    def sent(self) -> None:
        """Its request is handed to a connection, for the first time or again."""
        note(self.record, noted.SENT)

    def notify(self, method: str, params: bytes | None) -> None:
        """Hands on a notification that the upstream sent during the call."""
        exchange = self.exchange
        if method == "notifications/message" and not is_wanted(params, self.client, exchange):
            return
        (self.client if exchange is None else exchange).notify(method, params)

    def progress(self, params: bytes) -> None:
        """Hands on progress, under the client's own token."""
        if self.record is not None:
            self.record.progressed()
        exchange = self.exchange
        if exchange is not None and (token := exchange.progress_token) is not None:
            try:
                renamed = with_members(params, {"progressToken": token})
            except NotAnObject:
                return  # nobody can make anything of it
            exchange.notify("notifications/progress", renamed)

    async def ask(self, method: str, params: bytes | None) -> bytes:
        """Asks the client, and returns its answer (JSON text). Raises JsonRpcError, CallEndedError."""
        way = (self.exchange.request if self.exchange else None) or self.client.request
        note(self.record, noted.question(method))
        try:
            return await ask_client(way, self.capabilities, method, params)
        finally:
            note(self.record, noted.QUESTION_OVER)


class ModernCall(Call):
    """A call of a modern client, which is asked by the result of its request.

    unmet: the first capability that its upstream needed and the client lacks. news: set when its outcome is
    there, or a question. parked_at: when it was parked last (the event loop's time).
    """

    transitions = TRANSITIONS[Era.MODERN]

    def __init__(self, exchange: Exchange, request: UpstreamRequest) -> None:
        super().__init__(exchange, request)
        self.task: asyncio.Task[bytes] | None = None
        self.unmet: CapabilityPath | None = None
        self.questions: dict[str, ServerRequest] = {}
        """By the key under which the client is asked."""
        self.shown: frozenset[str] = frozenset()
        """The keys that the client was sent when it was parked."""
        self.news = asyncio.Event()
        self.parked_at = 0.0
        self._numbers = count(1)

    @property
    def unanswered(self) -> dict[str, ServerRequest]:
        """The questions that are open, by key."""
        return {key: one for key, one in self.questions.items() if not one.answer.done()}

    def start(self, work: Coroutine[None, None, bytes]) -> None:
        """Has a task of its own do ``work``, which makes the call: it may outlive the client's request."""
        self.task = asyncio.create_task(work)
        self.task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Task[bytes]") -> None:
        self.news.set()
        retrieve_exception(task)

    async def ask(self, method: str, params: bytes | None) -> bytes:
        capability = required_capability(method, params)
        if capability is None:
            raise _not_offered(method)
        if not has_capability(self.capabilities, capability):  # many servers ask, and do without an answer
            self.unmet = self.unmet or capability
            raise _not_offered(method)
        key = f"{method.split('/')[0]}-{next(self._numbers)}"
        question = ServerRequest(method, params, asyncio.get_running_loop().create_future())
        self.happens(Event.QUESTION)
        note(self.record, noted.question(method))
        self.questions[key] = question
        self.news.set()
        try:
            return await question.answer
        finally:
            note(self.record, noted.QUESTION_OVER)
            self.questions.pop(key, None)
            if self.state is State.ASKING and not self.unanswered:
                self.happens(Event.WITHDRAW)

    def fails_for_unmet(self, code: int | None, outcome: bytes) -> bool:
        """Whether its failure, with this JSON-RPC error code or in a result, comes of what the client lacks:
        the server hands on our refusal. Any other failure is passed on as it is.
        """
        return self.unmet is not None and (code == METHOD_NOT_FOUND or _NOT_OFFERED.encode() in outcome)

    def park(self) -> dict[str, ServerRequest]:
        """The client is sent the questions that are returned, by key."""
        self.happens(Event.PARK)
        self.exchange = None
        self.parked_at = asyncio.get_running_loop().time()
        questions = self.unanswered
        self.shown = frozenset(questions)
        return questions

    def resume(self, exchange: Exchange, answers: Mapping[str, bytes]) -> None:
        """The client has come back with ``exchange``, and ``answers`` to questions by their keys."""
        if exchange.record is not None and self.record is not None:
            exchange.record.continues = self.record.number
        self.record = exchange.record
        self.happens(Event.RESUME)
        self.exchange, self.client, self.capabilities = exchange, exchange.client, exchange.capabilities
        self.shown = frozenset()
        for key, answer in answers.items():
            self.questions[key].answer.set_result(answer)
        if self.state is State.ANSWERED:
            self._end_questions()
        elif self.unanswered:
            self.happens(Event.QUESTION)  # the client is asked again what it has not answered

    def ends(self, event: Event) -> None:
        """What is still asked in it is some other call's. A question that the client was sent can still be
        answered after a RESULT: nobody is asked twice.
        """
        super().ends(event)
        self._end_questions(self.shown if event is Event.RESULT else ())

    def abandon(self) -> None:
        """The client will not come back."""
        ended = self.state is State.KEPT
        self.happens(Event.ABANDON)
        self.shown = frozenset()
        if ended:
            self._end_questions()
        if self.task is not None:
            self.task.cancel()

    def _end_questions(self, but: Collection[str] = ()) -> None:
        for key, question in self.unanswered.items():
            if key not in but:
                question.answer.set_exception(CallEndedError())


async def ask_client(
    way: SendRequest | None, capabilities: bytes, method: str, params: bytes | None
) -> bytes:
    """Sends a client with these ``capabilities`` a request by this ``way``, None where it has none. Raises
    JsonRpcError.
    """
    capability = required_capability(method, params)
    if capability is not None and not has_capability(capabilities, capability[:1]):
        raise _not_offered(method)
    if way is None:
        raise JsonRpcError(RpcError(METHOD_NOT_FOUND, "The client can't be asked anything."))
    return await way(method, params)


def _not_offered(method: str) -> JsonRpcError:
    return JsonRpcError(RpcError(METHOD_NOT_FOUND, f"{_NOT_OFFERED} {method}."))


def _canonical(fields: Mapping[str, bytes]) -> str | None:
    try:
        read = {key: json.loads(text) for key, text in fields.items()}
        return json.dumps(read, sort_keys=True)
    except (ValueError, RecursionError):
        return None
