"""`run_code`: programs that call tools, and what of them waits for somebody.

The rules:

1. A program is read and checked before any of its calls is made.
2. A call in a program is a call like any other: the same tools, repairs, policy, audit log and pins. Nothing
   is ever sent again, not even what only reads.
3. What only reads, or what a person has allowed in the config, runs. About any other call a person is asked
   by the client; if that can't ask, the program pauses, and its call is made by `execute_tool`, which shows
   the client the true arguments. A program goes on once from a pause.
4. The client reads what became of each call, also of a program that failed.
"""

import asyncio
import hashlib
import time
from collections.abc import Coroutine, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from mcpzip.model.entry import Entry
from mcpzip.model.errors import (
    CallRefusedError,
    InvalidArgumentsError,
    McpzipError,
    OverloadedError,
    UnknownToolError,
)
from mcpzip.model.limits import (
    ASKED_ARGUMENTS,
    KEPT_SECONDS,
    PROGRAM,
    PROGRAM_PRINTED,
    PROGRAMS_OF_CLIENT_SIZE,
    READ_AT_ONCE,
)
from mcpzip.policy.hashes import arguments_hash
from mcpzip.programs.problems import blocking
from mcpzip.programs.sandbox import Outcome, Request, Sandbox, Start
from mcpzip.programs.sessions import Sessions
from mcpzip.programs.source import CALL, Program, parse, program_text, python_name, read_program, too_long
from mcpzip.programs.stubs import stubs
from mcpzip.proxy.arguments import ToolCall
from mcpzip.proxy.exchange import CONTINUATION_MEMBERS, Client, Exchange, members
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.metatools import EXECUTE
from mcpzip.proxy.parking import HANDLE_PREFIX
from mcpzip.proxy.program_calls import CallHost, Prepared, ProgramCalls, tokens_of
from mcpzip.proxy.program_replies import RUN_CODE_TOOL, Reply, ended, paused_before, replaced
from mcpzip.proxy.workers import run_in_worker
from mcpzip.wire import JsonRpcError, quote, unquote, with_members

_STATE = f"{HANDLE_PREFIX}run-"
"""The beginning of the `requestState` with which a modern client is asked something during a program."""

_NOT_SHOWN = "The program has ended, but its value can't be shown: too much else is being computed"


class _Paused(msgspec.Struct, eq=False):
    """A program that waits. digest: of its source. tools: that are defined in it. variables: the names of
    those that it began with, and ``version``, which they had then. seconds: that it may take from one pause
    to the next. is_resumed: whether the call that it waits for is being made.
    """

    program: Program
    digest: bytes
    calls: ProgramCalls
    outcome: Outcome
    tools: frozenset[str]
    variables: frozenset[str]
    version: int
    seconds: float
    name: str = ""
    is_resumed: bool = False

    @property
    def waits_for(self) -> Request:
        return self.outcome.waiting[0]

    @property
    def prepared(self) -> Prepared:
        return self.calls.prepared[self.waits_for.number]

    @property
    def size(self) -> int:
        """Bytes of what is kept of it."""
        return self.outcome.size + sum(map(len, self.calls.asked.values()))

    @property
    def is_asked(self) -> bool:
        """Whether it waits for an answer of a modern client, and not for `execute_tool`."""
        return self.waits_for.number in self.calls.asked


class Programs:
    """The programs of all clients. Everything runs on one event loop."""

    def __init__(self, host: CallHost) -> None:
        self._host = host
        self._sandbox = Sandbox()
        self._sessions: Sessions[_Paused] = Sessions()
        self._locks: dict[Hashable, asyncio.Lock] = {}
        """By client that is there, from its first program on."""
        self._expiry: asyncio.TimerHandle | None = None

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        self._sessions.remove_owner(client)
        self._locks.pop(client, None)

    async def close(self) -> None:
        """Ends the workers of the sandbox."""
        if self._expiry is not None:
            self._expiry.cancel()
        await self._sandbox.close()

    # --- run_code ---

    async def run(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        """The result of `run_code`. Raises InvalidArgumentsError, UnknownToolError and other errors of what
        is checked before anything runs.
        """
        code, seconds = _read(members(arguments), self._host.config.call_timeout)
        owner = _owner(exchange.client)
        if _is_state(exchange.fields.get("requestState", b"")):
            return await self._answered(code, seconds, exchange, owner)
        parsed = parse(code)
        program = await run_in_worker(lambda: read_program(parsed), "code")
        if owner is None:
            return await self._begin(program, exchange, owner, seconds)
        # Programs of one client have the same variables.
        async with self._locks.setdefault(owner, asyncio.Lock()):
            return await self._begin(program, exchange, owner, seconds)

    async def _begin(self, program: Program, exchange: Exchange, owner: Hashable, seconds: float) -> bytes:
        variables = self._sessions.variables(owner)
        tools = await self._tools(program, variables.names, exchange)
        inputs = await self._host.tool_caller.results.variables(
            exchange.client, program.reads - variables.names - program.assigns
        )
        await self._sandbox.start()
        if program.tools:
            names = (*(variables.names & program.reads), *inputs)
            known = await run_in_worker(lambda: stubs(tools, names), "code")
            found = await self._sandbox.problems(program.text, known, seconds)
            if problems := await run_in_worker(lambda: blocking(found, tools, program.mappings), "code"):
                raise InvalidArgumentsError(f"{problems} Nothing ran.")
        new = tuple(name for name in program.tools if name not in variables.tools | variables.names)
        calls = ProgramCalls(self._host, exchange, tools)

        async def run() -> Outcome:
            start = Start(program.form, new, inputs, variables.state)
            return await self._sandbox.run(start, calls, seconds)

        began = variables.tools | set(new), variables.names, variables.version
        paused = _Paused(program, _digest(program.text), calls, Outcome(), *began, seconds)
        return await self._ended(paused, exchange, owner, run())

    async def _tools(
        self, program: Program, variables: frozenset[str], exchange: Exchange
    ) -> dict[str, Entry]:
        """The tools that ``program`` names, by their names in it. Raises UnknownToolError,
        UpstreamError.
        """
        found = {}
        for name in program.tools:
            if name == CALL or name in variables:
                continue
            try:
                with self._host.tool_caller.looking_up(name, b"{}", exchange):
                    found[name], _ = await self._host.resolver.resolve(name, None, exchange.principal)
            except UnknownToolError as error:
                near = tuple(map(python_name, error.nearest))
                raise UnknownToolError(name, near, "Nothing ran. Find tools with search_tools.") from error
        return found

    # --- going on ---

    async def _answered(self, code: str, seconds: float, exchange: Exchange, owner: Hashable) -> bytes:
        """Goes on with a program after a modern client has answered what was asked during it."""
        name = unquote(exchange.fields["requestState"]).removeprefix(_STATE)
        paused = self._sessions.paused(exchange.client.owner, name)
        if paused is None or paused.is_resumed or not paused.is_asked:
            raise InvalidArgumentsError(
                "This program doesn't wait for an answer any more. Nothing was run again."
            )
        if paused.digest != _digest(program_text(code)):
            raise InvalidArgumentsError(
                "The program that waits for this answer has another 'code'. Nothing ran."
            )
        self._sessions.take(exchange.client.owner, name)
        if exchange.record is not None:
            exchange.record.continues = paused.calls.number
        number, paused.seconds = paused.waits_for.number, seconds
        given = {key: exchange.fields[key] for key in CONTINUATION_MEMBERS if key in exchange.fields}

        async def run() -> Outcome:
            answered = await paused.calls.answered(number, given, seconds, exchange)
            if answered is None:  # it asks something else
                paused.outcome.printed = ""  # which `paused.calls` has
                return paused.outcome
            return await self._sandbox.resume(
                paused.outcome, {number: answered}, paused.calls, paused.seconds
            )

        return await self._ended(paused, exchange, owner, run())

    async def execute(
        self,
        name: str,
        entry: Entry,
        call: ToolCall,
        exchange: Exchange,
        *,
        only_reads: bool,
        about: tuple[str, ...],
    ) -> bytes:
        """Makes the call of ``entry`` for which the paused program ``name`` waits, and goes on with the
        program. Returns what the program replies, or what the server asks during the call. A call that the
        policy refuses can be made again. Raises InvalidArgumentsError if the program waits for another call.
        """
        owner, caller = _owner(exchange.client), self._host.tool_caller
        paused = self._waiting(name, exchange.client.owner, entry, call.arguments)
        paused.is_resumed = True
        exchange.parent = paused.calls.number
        result, error = None, None
        try:
            result = await caller.execute(
                entry, call.arguments, call.timeout, exchange, only_reads=only_reads, about=about, once=True
            )
        except CallRefusedError:
            paused.is_resumed = False
            raise
        except (McpzipError, JsonRpcError) as failure:
            error = failure
        except asyncio.CancelledError:
            self._sessions.take(exchange.client.owner, name)
            paused.calls.journal.begin(entry.name)
            self._stopped(paused, owner)
            raise
        if result is not None and is_input_required(result):
            paused.is_resumed = False
            return result
        self._sessions.take(exchange.client.owner, name)
        calls, number = paused.calls, paused.waits_for.number

        async def run() -> Outcome:
            answered = await calls.settled(number, result, error, exchange)
            return await self._sandbox.resume(paused.outcome, {number: answered}, calls, paused.seconds)

        return await self._ended(paused, exchange, owner, run())

    def _waiting(self, name: str, owner: Hashable, entry: Entry, arguments: bytes) -> _Paused:
        """The paused program ``name``, if it waits for this call. Raises InvalidArgumentsError."""
        paused = self._sessions.paused(owner, name)
        if not self._host.config.code.enabled:
            raise InvalidArgumentsError("The config lets no programs run any more. Nothing ran.")
        if paused is None or paused.is_asked:
            raise InvalidArgumentsError(f"There is no paused program {name!r} any more. Nothing ran.")
        expected = paused.prepared
        if entry != expected.entry or not _are_equal(arguments, expected.arguments):
            written = expected.arguments.decode("utf-8", "replace")[:1_000]
            call = f"{expected.entry.name} with {written}"
            raise InvalidArgumentsError(f"The program {name} waits for another call: {call}. Nothing ran.")
        if paused.is_resumed:
            raise InvalidArgumentsError(f"The program {name} is going on already. Nothing ran.")
        return paused

    # --- the end of a run ---

    async def _ended(
        self, paused: _Paused, exchange: Exchange, owner: Hashable, run: Coroutine[Any, Any, Outcome]
    ) -> bytes:
        """The reply to the client after ``run``, which is a part of the program or all of it."""
        calls, started = paused.calls, time.perf_counter()
        try:
            outcome = self._printed(paused, await run)
            # Meanwhile no worker of the sandbox waits, and a person has as long as they need.
            while outcome.waiting and calls.asks_during_request(number := paused.waits_for.number):
                answered = await calls.ask(number)
                resumed = self._sandbox.resume(outcome, {number: answered}, calls, paused.seconds)
                outcome = self._printed(paused, await resumed)
            calls.seconds += time.perf_counter() - started
            if outcome.waiting and paused.size > PROGRAMS_OF_CLIENT_SIZE:
                size = f"{PROGRAMS_OF_CLIENT_SIZE >> 20} MiB"
                error = f"The program can't be paused: its variables and results have more than {size}"
                outcome = Outcome(error=error, printed=calls.printed)
            if not outcome.waiting:
                return await self._reply(paused, outcome, exchange.client, owner)
        except asyncio.CancelledError:
            self._stopped(paused, owner)
            raise
        paused.is_resumed = False
        suffix = self._host.tool_caller.results.new_suffix(exchange.client)
        paused.name = self._sessions.pause(exchange.client.owner, paused, paused.size, suffix)
        self._begin_expiry()
        return self._asks(paused)

    def _printed(self, paused: _Paused, outcome: Outcome) -> Outcome:
        """``outcome``, which is that of ``paused`` now, with what was printed before."""
        printed = paused.calls.printed + outcome.printed
        outcome.printed = paused.calls.printed = printed[:PROGRAM_PRINTED]
        paused.outcome = outcome
        return outcome

    async def _reply(self, paused: _Paused, outcome: Outcome, client: Client, owner: Hashable) -> bytes:
        """The reply of a program that has ended. There is one however busy we are: the calls were made."""
        variables, results = self._sessions.variables(owner), self._host.tool_caller.results
        unsaid, variables.unsaid = variables.unsaid, ""
        if outcome.state is not None:
            names = paused.variables | paused.program.assigns if outcome.state else frozenset()
            if owner is not None and variables.version != paused.version:
                unsaid = f"{unsaid} {replaced(variables.names - names)}".strip()
            self._sessions.store(owner, outcome.state, names, paused.tools if outcome.state else frozenset())
            self._begin_expiry()

        def made(outcome: Outcome, blocks: Sequence[bytes] = ()) -> Reply:
            return ended(
                paused.program,
                outcome,
                paused.calls.journal,
                paused.calls.seconds,
                blocks,
                unsaid,
                keeps_variables=owner is not None,
            )

        try:
            blocks = await results.blocks(client, outcome.value)
            reply = await run_in_worker(lambda: made(outcome, blocks), "reply")
        except OverloadedError:
            reply = made(Outcome(error=_NOT_SHOWN, state=outcome.state))
        shown = await results.shown(RUN_CODE_TOOL, reply.result, client, EXECUTE)

        def finished() -> tuple[bytes, int]:
            return reply.with_status(shown), tokens_of(shown)

        is_short = len(shown) <= READ_AT_ONCE
        result, tokens = finished() if is_short else await run_in_worker(finished, "reply")
        paused.calls.count_kept(tokens)
        return result

    def _stopped(self, paused: _Paused, owner: Hashable) -> None:
        """The client has cancelled a request during which ``paused`` ran, so that it gets no reply."""
        journal = paused.calls.journal
        if journal.entries and owner in self._locks:
            text = f"The client stopped the program before: {journal.text}."
            self._sessions.variables(owner).unsaid = text

    def _begin_expiry(self) -> None:
        if self._expiry is None:
            self._expiry = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._expire)

    def _expire(self) -> None:
        """Gives the memory of what is old back, also if nobody runs programs any more."""
        self._expiry = None
        self._sessions.remove_old()
        if len(self._sessions):
            self._begin_expiry()

    def _asks(self, paused: _Paused) -> bytes:
        """The reply of a program that is paused: what a server, or the policy, asks a modern client; else
        which call is to be made.
        """
        number = paused.waits_for.number
        asked = paused.calls.asked.get(number)
        if asked is not None:
            return with_members(asked, {"requestState": quote(_STATE + paused.name)})
        return paused_before(paused.prepared, paused.name, paused.calls.journal)


def _owner(client: Client) -> Hashable:
    """Whose variables are meant; None for a client of a single request, behind which may be several."""
    return client if client.has_session else None


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _are_equal(arguments: bytes, expected: bytes) -> bool:
    """Whether ``arguments`` mean the same as ``expected``, which are at most `ASKED_ARGUMENTS` bytes."""
    # A byte is written as six at most (an escape), and whitespace has no limit: more isn't read.
    if len(arguments) > 8 * ASKED_ARGUMENTS:
        return False
    return arguments_hash(arguments) == arguments_hash(expected)


def _is_state(state: bytes) -> bool:
    return state.startswith(b'"' + _STATE.encode())


def _read(fields: Mapping[str, bytes], longest: float) -> tuple[str, float]:
    """The code, and the seconds that it may take. Raises InvalidArgumentsError."""
    if len(fields.get("code", b"")) > 6 * PROGRAM + 2:  # however its characters are written
        raise too_long()
    try:
        code = unquote(fields["code"]) if "code" in fields else ""
    except ValueError:
        code = ""
    if not code.strip():
        raise InvalidArgumentsError("'code' is missing: give the text of a Python program.")
    timeout = fields.get("timeout", b"null")
    if timeout == b"null":
        return code, longest
    try:
        seconds = msgspec.json.decode(timeout, type=float, strict=False)
    except msgspec.DecodeError:
        seconds = 0.0
    if not seconds > 0:
        raise InvalidArgumentsError("'timeout' is not a number of seconds above 0.")
    return code, min(seconds, longest)
