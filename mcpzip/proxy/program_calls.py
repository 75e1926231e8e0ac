"""The calls that a program makes: each goes the way of any call, and is written down.

The rule: of a call that was begun it is known what became of it, or that it may have run.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from mcpzip.config import Config
from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.errors import (
    CallRefusedError,
    McpzipError,
    OverloadedError,
    UpstreamError,
    UpstreamLostError,
    UpstreamUnavailableError,
)
from mcpzip.model.limits import ASKED_ARGUMENTS
from mcpzip.model.quoting import named, one_line
from mcpzip.policy.question import Confirm
from mcpzip.programs import journal as journals
from mcpzip.programs.journal import Journal
from mcpzip.programs.sandbox import FailedCallError, PausedError, Request, failed, succeeded
from mcpzip.programs.source import CALL
from mcpzip.programs.values import error_text, has_binary, value_of
from mcpzip.proxy.argument_repair import repair_arguments
from mcpzip.proxy.arguments import ToolCall
from mcpzip.proxy.call import timeout_of
from mcpzip.proxy.client_capabilities import FORM_ELICITATION, has_capability
from mcpzip.proxy.effects import Effects
from mcpzip.proxy.exchange import Exchange, members
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.name_resolution import NameResolver
from mcpzip.proxy.tool_caller import ToolCaller
from mcpzip.proxy.tool_usage import is_success
from mcpzip.proxy.workers import run_in_worker
from mcpzip.results.document import Document, read_result, shown, size_in_tokens
from mcpzip.results.slices import UnreadableError, elements, kind_of
from mcpzip.wire import Era, JsonRpcError, join_object, quote
from mcpzip.wire.eras import PROGRESS_TOKEN
from mcpzip.wire.errors import UpstreamRpcError

T = TypeVar("T")

_ERROR = 4_000
"""Characters of a tool's error that a program gets."""


class CallHost(Protocol):
    """What programs and their calls use of `mcpzip.proxy.proxy.Proxy`."""

    resolver: NameResolver
    tool_caller: ToolCaller

    @property
    def config(self) -> Config: ...


class Prepared(msgspec.Struct, eq=False):
    """A call that is ready to be made. about: sentences for a person about arguments that are kept results.
    confirm: why a person is asked. repairs: how many were made. noted: in the journal.
    """

    entry: Entry
    arguments: bytes
    about: tuple[str, ...] = ()
    confirm: Confirm | None = None
    repairs: int = 0
    noted: journals.Entry | None = None


class ProgramCalls:
    """The calls of one program.

    journal: what became of each. prepared: by number, those that wait. asked: by number, the result with
    which a server, or the policy, asks a modern client something before it. seconds: that the program took.
    printed: what it has printed so far. number: of the program's own record.
    """

    def __init__(self, host: CallHost, exchange: Exchange, tools: dict[str, Entry]) -> None:
        self._host, self._exchange, self._tools = host, exchange, tools
        self.journal = Journal()
        self.prepared: dict[int, Prepared] = {}
        self.asked: dict[int, bytes] = {}
        self.seconds = 0.0
        self.printed = ""
        self.number = 0 if exchange.record is None else exchange.record.number
        self._servers: list[str] = []
        self._made = self._ended = 0

    async def call(self, request: Request) -> str:
        """The value of a call, as JSON text. Raises FailedCallError, PausedError."""
        self._made += 1
        if self._made > limits.PROGRAM_CALLS:
            raise FailedCallError(f"a program makes {limits.PROGRAM_CALLS} calls at most")
        try:
            prepared = await self._prepare(request)
        except (McpzipError, JsonRpcError) as error:
            raise FailedCallError(str(error)) from error
        effects = Effects(self._host.config, self._host.tool_caller.guard.decisions)
        decision = effects.of(prepared.entry)
        if decision.refusal:
            raise FailedCallError(decision.refusal)
        if decision.asks:
            if len(prepared.arguments) > ASKED_ARGUMENTS:
                raise FailedCallError(
                    f"{named(prepared.entry.name)} has to be allowed by a person, and its arguments are too "
                    "long to be shown to one. Call it with execute_tool."
                )
            if self._can_ask:
                prepared.confirm = Confirm(decision.rule, self._seen_besides(prepared.entry.server))
            if prepared.confirm is None or self._exchange.client.era is not Era.MODERN:
                self.prepared[request.number] = prepared
                raise PausedError
        return await self._value(request.number, prepared, self._exchange, {})

    async def answered(
        self, number: int, given: dict[str, bytes], seconds: float, exchange: Exchange
    ) -> "dict[str, Any] | None":
        """The outcome of a call that is made again with what a modern client answered (``given``: members of
        its params), and that may take so many seconds; None if it asks something else.
        """
        self._exchange = exchange
        state = members(self.asked.pop(number)).get("requestState")
        given = {key: each for key, each in given.items() if key != "requestState"}
        try:
            fields = given if state is None else {**given, "requestState": state}
            prepared = self.prepared[number]
            seconds = min(seconds, timeout_of(self._host.config, prepared.entry.server))
            return succeeded(await self._value(number, prepared, exchange, fields, seconds))
        except FailedCallError as error:
            return failed(str(error))
        except PausedError:
            return None

    def asks_during_request(self, number: int) -> bool:
        """Whether a legacy client is asked about the paused call ``number`` during its request."""
        prepared = self.prepared.get(number)
        return prepared is not None and prepared.confirm is not None and number not in self.asked

    async def ask(self, number: int) -> "dict[str, Any]":
        """Has a person asked about this call, and makes it. Returns its outcome."""
        prepared = self.prepared.pop(number)
        assert prepared.confirm is not None
        prepared.confirm = Confirm(prepared.confirm.rule, self._seen_besides(prepared.entry.server))
        try:
            return succeeded(await self._value(number, prepared, self._exchange, {}))
        except FailedCallError as error:
            return failed(str(error))

    async def settled(
        self, number: int, result: bytes | None, error: Exception | None, exchange: Exchange
    ) -> "dict[str, Any]":
        """The outcome of a call that `execute_tool` has made: it had a ``result``, or failed."""
        self._exchange = exchange
        prepared = self.prepared.pop(number)
        noted = self.journal.begin(prepared.entry.name)
        try:
            if result is None:
                assert error is not None
                raise _failure(error, noted)
            return succeeded(await self._read(prepared, result, noted))
        except FailedCallError as failure:
            return failed(str(failure))

    def count_kept(self, tokens: int) -> None:
        """Counts the results that the client did not have to read. tokens: of what it reads instead."""
        read = [(entry.tool, entry.tokens) for entry in self.journal.entries if entry.tokens]
        self._host.tool_caller.results.count_program(read, tokens)

    @property
    def _can_ask(self) -> bool:
        """Whether a person can be asked by the client."""
        exchange = self._exchange
        if not has_capability(exchange.capabilities, FORM_ELICITATION):
            return False
        return exchange.client.era is Era.MODERN or (exchange.request or exchange.client.request) is not None

    def _seen_besides(self, server: str) -> str:
        """The servers whose results the program has, but ``server``, for a person."""
        return ", ".join(each for each in self._servers if each != server)

    async def _prepare(self, request: Request) -> Prepared:
        arguments = await _arguments(request)
        name = request.name
        entry = self._tools.get(name) if name != CALL else None
        if entry is None:
            with self._host.tool_caller.looking_up(name, arguments, self._exchange):
                entry, _ = await self._host.resolver.resolve(name, None, self._exchange.principal)
        else:  # what it was when the program began says nothing about what it does now
            entry = self._host.tool_caller.current(entry, self._exchange.principal)
        filled, about = await self._host.tool_caller.results.fill(arguments, self._exchange.client)
        call = ToolCall(name, filled, None)
        size = len(entry.raw) + len(filled)
        repaired = await _computed(lambda: repair_arguments(call, entry), size, "arguments")
        return Prepared(entry, repaired.arguments, about, repairs=len(repaired.repairs))

    async def _value(
        self,
        number: int,
        prepared: Prepared,
        exchange: Exchange,
        fields: dict[str, bytes],
        seconds: float | None = None,
    ) -> str:
        """The value of a call, as JSON text. seconds: that it may take, None for the configured timeout.
        Raises FailedCallError, PausedError.
        """
        noted = prepared.noted
        if noted is None:
            noted = prepared.noted = self.journal.begin(prepared.entry.name)
        noted.state = "not run"
        try:
            result = await self._host.tool_caller.execute(
                prepared.entry,
                prepared.arguments,
                seconds,
                _of_call(exchange, fields, self.number),
                about=prepared.about,
                once=True,
                confirm=prepared.confirm,
                check=partial(self._check_sent, prepared.entry, noted),
                repairs=prepared.repairs,
            )
        except (McpzipError, JsonRpcError) as error:
            raise _failure(error, noted) from error
        if is_input_required(result):
            noted.state = "waits"
            self.prepared[number], self.asked[number] = prepared, result
            raise PausedError
        self.prepared.pop(number, None)
        return await self._read(prepared, result, noted)

    def _check_sent(self, entry: Entry, noted: journals.Entry) -> None:
        """A call of ``entry`` is about to be sent. Raises CallRefusedError if the tool has changed since it
        was decided that the call may run.
        """
        if self._host.tool_caller.current(entry, self._exchange.principal) != entry:
            raise CallRefusedError(f"{named(entry.name)} was changed meanwhile. Nothing ran.", "changed")
        noted.state = "may have run"

    async def _read(self, prepared: Prepared, result: bytes, noted: journals.Entry) -> str:
        """The value of ``result``. Raises FailedCallError if it is an error."""
        self._progress(prepared.entry.name)
        if prepared.entry.server not in self._servers:
            self._servers.append(prepared.entry.server)
        noted.state = "done"
        try:
            document, noted.tokens, is_binary = await _computed(
                lambda: _document(result), len(result), "result"
            )
            if not is_success(result):
                noted.state = "failed"
                raise FailedCallError(error_text(document, _ERROR))
            is_large = len(document.value or document.text) > limits.PROGRAM_VALUE
            handle = ""
            if is_large or is_binary:
                handle = await self._host.tool_caller.results.kept_for_program(
                    prepared.entry, result, self._exchange.client, noted.tokens
                )
            if is_large:
                where = f": {handle} has it, and execute_tool reads it in parts" if handle else ""
                raise FailedCallError(f"its result is too large for a program{where}. The tool ran.")
            return await _computed(
                lambda: value_of(document, handle).decode("utf-8", "surrogatepass"), len(result), "result"
            )
        except UnreadableError as error:
            raise FailedCallError(f"its result can't be read: {error}. The tool ran.") from error
        except OverloadedError as error:
            raise FailedCallError("its result can't be read at the moment. The tool ran.") from error

    def _progress(self, name: str) -> None:
        """Tells the client that a call has ended."""
        self._ended += 1
        token = self._exchange.progress_token
        if token is not None:
            fields = {
                "progressToken": token,
                "progress": b"%d" % self._ended,
                "message": quote(one_line(name)),
            }
            self._exchange.notify("notifications/progress", join_object(fields))


def _of_call(exchange: Exchange, fields: dict[str, bytes], program: int) -> Exchange:
    """The request of a client, for a call that is made during it. fields: the members of its params that
    count for that call. program: the number of the program's record.
    """
    made = Exchange(
        client=exchange.client,
        id=exchange.id,
        notify=exchange.notify,
        request=exchange.request,
        capabilities=exchange.capabilities,
        log_level=exchange.log_level,
        principal=exchange.principal,
        trace=exchange.trace,
        parent=program,
    )
    made.fields = fields
    made.meta_fields = {key: each for key, each in exchange.meta_fields.items() if key != PROGRESS_TOKEN}
    return made


def _failure(error: Exception, noted: journals.Entry) -> FailedCallError:
    """What a program is told of a call that failed with ``error``."""
    is_unsent = isinstance(error, UpstreamUnavailableError) or (
        isinstance(error, UpstreamLostError) and not error.may_have_run
    )
    if isinstance(error, CallRefusedError):
        noted.state = "refused"
    elif is_unsent:
        noted.state = "not run"
    elif isinstance(error, JsonRpcError | UpstreamRpcError) or not isinstance(error, UpstreamError):
        noted.state = "failed"
    return FailedCallError(str(error)[:_ERROR])


def tokens_of(reply: bytes) -> int:
    """About so many tokens does a client read of ``reply``."""
    return size_in_tokens(read_result(reply).text)


async def _arguments(request: Request) -> bytes:
    """The named arguments of a call, JSON text. Raises FailedCallError."""

    def read() -> bytes:
        try:
            positional, given = list(elements(request.arguments.encode()))[:2]
            msgspec.json.Decoder(msgspec.Raw).decode(given)
            if positional != b"[]" or kind_of(given) != "object":
                raise FailedCallError("a tool takes named arguments only, as in server__tool(key=value)")
        except (ValueError, UnreadableError, msgspec.DecodeError, RecursionError) as error:
            raise FailedCallError("its arguments can't be written as JSON") from error
        return given

    if len(request.arguments) > limits.PROGRAM_VALUE:
        raise FailedCallError(f"its arguments have more than {limits.PROGRAM_VALUE:,} characters")
    return await _computed(read, len(request.arguments), "arguments")


async def _computed(work: Callable[[], T], size: int, name: str) -> T:
    """``work()``, which reads ``size`` bytes: in a thread if these are many."""
    return work() if size <= limits.READ_AT_ONCE else await run_in_worker(work, name)


def _document(result: bytes) -> tuple[Document, int, bool]:
    """What is in ``result``, its tokens, and whether it has blocks that a program can't compute with."""
    document = read_result(result)
    return document, size_in_tokens(shown(document)), has_binary(document)
