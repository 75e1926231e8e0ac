"""The sandbox in which programs run: workers of `pydantic-monty`, each a process without files, network or
environment.

The rules:

1. Only texts pass between a program and us, and each is bounded by the memory of the program (`prelude`).
2. A worker holds a program only while that computes or waits for a call under way. Variables between two
   programs, and programs that wait for somebody's answer, are bytes here, which any worker goes on from.
3. A call is made once. What ends a program ends the calls that it waits for, and who asks learns of each what
   became of it.
4. The clock of `limits.PROGRAM_SECONDS` runs only while the program computes. A program whose time for all of
   it is over gets a TimeoutError from every call, so that it can end in order and its variables stay.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.programs.prelude import KEPT, LATER, NOW, binding, prelude
from mcpzip.system.threads import in_thread

INSTALL = "pip install 'mcpzip[code]'"
GRACE = 1.0
"""Seconds that a program has to end in order when its time is over, and a worker to answer."""
LONGEST_SLEEP = 86_400.0
"""Seconds. The time for the program is over before that."""
ERROR = 4_000
"""Characters of the error with which a program ends."""
LARGE = 256 * 1024
"""Characters of a kept result from which on it isn't among the variables: the next program reads it again.
And bytes of variables from which on it is tried whether a program can have them."""
_CHECKED = "mcpzip_checked"
"""What the checked form of a program reads first, so that nothing of it runs."""
_SLEEPS = ("time.sleep", "asyncio.sleep")
_TIME_OVER = "the time of the program is over"


class PausedError(Exception):
    """Raised by `Host.call` for a call that can't be made until somebody allows it."""


class FailedCallError(Exception):
    """Raised by `Host.call`: the program gets a RuntimeError with this text."""


class Request(msgspec.Struct, frozen=True):
    """A call that a program makes. number: of the call in its run. arguments: ``[positional, named]``, JSON
    text.
    """

    number: int
    name: str
    arguments: str


class Host(Protocol):
    """What a program reaches of the outside."""

    async def call(self, request: Request) -> str:
        """The value, as JSON text. Raises FailedCallError, PausedError."""
        ...


class Start(msgspec.Struct, frozen=True):
    """How a program begins. form: what runs (`source.Program`). tools: the names in it that are tools,
    without those that ``state`` has. inputs: the values of variables, JSON texts by name. state: the
    variables of before, b"" for none.
    """

    form: str
    tools: tuple[str, ...]
    inputs: Mapping[str, str] = {}
    state: bytes = b""


class Outcome(msgspec.Struct):
    """How a run ended. value: JSON text, "" for none. error: why it failed, "" if it didn't. lines: the lines
    of the program in which it failed, the innermost last. printed: what it printed, as far as that is kept.
    state: the variables; None if they are lost, b"" if those of before are lost too. waiting: if it is
    paused, the calls that it waits for, and ``snapshot``. settled: by call, what has been answered and not
    been handed over yet.
    """

    value: str = ""
    error: str = ""
    lines: tuple[int, ...] = ()
    printed: str = ""
    state: bytes | None = None
    waiting: tuple[Request, ...] = ()
    snapshot: bytes = b""
    settled: "dict[int, dict[str, Any]]" = {}

    @property
    def size(self) -> int:
        """Bytes of what a paused program needs to go on."""
        results = (len(each.get("return_value") or "") for each in self.settled.values())
        return len(self.snapshot) + sum(results) + sum(len(each.arguments) for each in self.waiting)


class Sandbox:
    """The workers. Everything runs on one event loop; a worker starts with the first program."""

    def __init__(self) -> None:
        self._monty: Any = None
        self._pool: Any = None
        self._starting: asyncio.Lock | None = None
        self._places = asyncio.Semaphore(limits.PROGRAMS)

    async def start(self) -> None:
        """Starts a worker, if there is none yet. Raises InvalidArgumentsError if that isn't installed."""
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._pool is None:
                self._pool = await self._started()

    async def _started(self) -> Any:
        try:
            self._monty = await in_thread(lambda: importlib.import_module("pydantic_monty"), "sandbox")
            pool = self._monty.AsyncMonty(
                min_processes=1,
                max_processes=limits.PROGRAMS,
                request_timeout=limits.PROGRAM_SECONDS + 2 * GRACE,
            )
            return await pool.__aenter__()
        except (ImportError, FileNotFoundError) as error:
            raise InvalidArgumentsError(
                f"Programs need the sandbox, which is not installed: {INSTALL}. Nothing ran; execute_tool "
                "works without it."
            ) from error

    async def close(self) -> None:
        """Ends the workers."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def problems(self, text: str, stubs: str, seconds: float) -> list[str]:
        """What the type checker finds in a program, one line each, as it says it. Nothing of it runs.
        seconds: that it may take until a worker is free. Raises InvalidArgumentsError.
        """
        async with self._session(
            seconds,
            type_check=True,
            type_check_format="concise",
            type_check_stubs=f"{stubs}{_CHECKED}: Any\n",
        ) as session:
            try:
                snapshot = await session.feed_start(f"{_CHECKED}\n{text}")
                while isinstance(snapshot, self._monty.AsyncFunctionSnapshot):  # imports
                    snapshot = await snapshot.resume_not_handled()
            except self._monty.MontyTypingError as error:
                return str(error.display()).splitlines()
            except self._monty.MontyError:
                return []  # the run says it
        return []

    async def run(self, start: Start, host: Host, seconds: float) -> Outcome:
        """Runs a program. seconds: that it may take in all, and as many until a worker is free. Raises
        InvalidArgumentsError.
        """
        outcome = await self._run(start, host, seconds)
        await self._try_state(outcome)
        return outcome

    async def _run(self, start: Start, host: Host, seconds: float) -> Outcome:
        printed, inputs = _Printed(), start.inputs
        async with self._session(seconds) as session:
            try:
                if start.state:
                    await session.load_session(start.state)
                if defined := prelude(start.tools, is_first=not start.state):
                    await session.feed_run(defined, skip_type_check=True)
            except self._monty.MontyError:  # they take more memory than their form here has bytes
                text = "the variables of before take all the memory of a program, so they are forgotten now"
                return Outcome(error=text, state=b"")
            for name, value in inputs.items():
                if len(value) > limits.PROGRAM_VALUE:
                    text = f"{name} is too large for a program: execute_tool reads it in parts"
                    return Outcome(error=text)
                try:
                    await session.feed_run(binding(name), inputs={KEPT: value})
                except self._monty.MontyError as error:
                    return Outcome(error=f"{name} can't be used here: {_said(error)}")
            run = _Run(self._monty, session, host, printed, seconds)
            run.large = [name for name, value in inputs.items() if len(value) > LARGE]
            return await run.drive(lambda: session.feed_start(start.form, print_callback=printed))

    async def resume(
        self, paused: Outcome, answered: "dict[int, dict[str, Any]]", host: Host, seconds: float
    ) -> Outcome:
        """Goes on with a program that was paused. answered: the outcomes of calls that it waits for."""
        printed = _Printed()
        async with self._session(None) as session:
            run = _Run(self._monty, session, host, printed, seconds)
            run.expect(paused, answered)
            outcome = await run.drive(lambda: session.load_snapshot(paused.snapshot, print_callback=printed))
        await self._try_state(outcome)
        return outcome

    async def _try_state(self, outcome: Outcome) -> None:
        """Gives the variables up if they leave a program too little memory: no further one could run. They
        take more than their bytes here.
        """
        if outcome.state is None or len(outcome.state) <= LARGE:
            return
        async with self._session(None, limits.PROGRAM_MEMORY * 3 // 4) as session:
            try:
                await session.load_session(outcome.state)
                await session.feed_run("0")
            except self._monty.MontyError:
                outcome.state = None

    @asynccontextmanager
    async def _session(
        self, seconds: float | None, memory: int | None = None, **settings: Any
    ) -> AsyncIterator[Any]:
        """A session in a worker. seconds: that it may take until one is free, None for any number. memory:
        bytes, None for `limits.PROGRAM_MEMORY`. Raises InvalidArgumentsError.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
        except TimeoutError as error:
            text = "Too many programs run at the moment. Nothing ran: try again later."
            raise InvalidArgumentsError(text) from error
        try:
            async with self._pool.checkout(
                limits={
                    "max_feed_duration_secs": limits.PROGRAM_SECONDS,
                    "max_memory": memory or limits.PROGRAM_MEMORY,
                },
                os_policy={"sleep": "call_host"},
                **settings,
            ) as session:
                yield session
        finally:
            self._places.release()


def succeeded(value: str) -> "dict[str, Any]":
    """The outcome of a call, for `Outcome.settled`. value: JSON text."""
    return {"return_value": value}


def failed(reason: str) -> "dict[str, Any]":
    """The outcome of a call that failed."""
    return {"exc_type": "RuntimeError", "message": reason}


class _Printed:
    """Takes what a program prints. text: the first `limits.PROGRAM_PRINTED` characters of it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = limits.PROGRAM_PRINTED

    def __call__(self, stream: str, text: str) -> None:
        if self._left > 0:
            self._parts.append(text[: self._left])
            self._left -= len(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)


class _Run:
    """One run of a program, from a start or a pause to its end or the next pause."""

    def __init__(
        self,
        monty: Any,
        session: Any,
        host: Host,
        printed: _Printed,
        seconds: float,
    ) -> None:
        self._monty, self._session, self._host, self._printed = monty, session, host, printed
        self._tasks: dict[int, asyncio.Task[dict[str, Any]]] = {}
        self._settled: dict[int, dict[str, Any]] = {}
        self._paused: dict[int, Request] = {}
        self._places = asyncio.Semaphore(limits.PROGRAM_CALLS_AT_ONCE)
        self.large: list[str] = []
        self._until = asyncio.get_running_loop().time() + seconds

    def expect(self, paused: Outcome, answered: "dict[int, dict[str, Any]]") -> None:
        """What is known of the calls of a program that was paused."""
        self._settled = {**paused.settled, **answered}
        self._paused = {each.number: each for each in paused.waiting if each.number not in answered}

    async def drive(self, start: Callable[[], Awaitable[Any]]) -> Outcome:
        try:
            return await self._drive(start)
        finally:
            for task in self._tasks.values():
                task.cancel()
            if self._tasks:
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _drive(self, start: Callable[[], Awaitable[Any]]) -> Outcome:
        monty = self._monty
        try:
            snapshot = await start()
            while not isinstance(snapshot, monty.MontyComplete):
                if isinstance(snapshot, monty.AsyncNameLookupSnapshot):
                    snapshot = await self._look_up(snapshot)
                elif isinstance(snapshot, monty.AsyncFutureSnapshot):
                    found = await self._first_of(snapshot.pending_call_ids)
                    if not found:
                        return await self._pause(snapshot)
                    snapshot = await snapshot.resume(found)
                elif snapshot.function_name == NOW or snapshot.function_name == _SLEEPS[0]:
                    self._begin(snapshot)
                    found = await self._first_of([snapshot.call_id])
                    if not found:
                        return await self._pause(snapshot)
                    snapshot = await snapshot.resume(found[snapshot.call_id])
                elif snapshot.function_name == LATER or snapshot.function_name == _SLEEPS[1]:
                    self._begin(snapshot)
                    snapshot = await snapshot.resume({"future": ...})
                elif snapshot.is_os_function:
                    snapshot = await snapshot.resume_not_handled()
                else:
                    said = f"name {snapshot.function_name[:100]!r} is not defined"
                    snapshot = await snapshot.resume({"exc_type": "NameError", "message": said})
        except monty.MontyCrashedError as error:
            return self._outcome(error=f"the sandbox ended: {error}")
        except monty.MontyError as error:
            return await self._failed(error)
        value = _text(snapshot.output)
        if (size := len(value)) > limits.PROGRAM_VALUE:
            text = (
                f"its value has {size:,} characters, and a program ends with {limits.PROGRAM_VALUE:,} at most"
            )
            return self._outcome(error=text, state=await self._state())
        return self._outcome(value=value, state=await self._state())

    async def _look_up(self, snapshot: Any) -> Any:
        name = snapshot.variable_name
        if name not in (NOW, LATER):
            return await snapshot.resume()

        def function() -> None:
            """Is one of ours by its name alone."""

        function.__name__ = name
        return await snapshot.resume(value=function)

    def _begin(self, snapshot: Any) -> None:
        """Begins what a function of ours does."""
        number = snapshot.call_id
        if number in self._settled or number in self._paused:
            return
        if asyncio.get_running_loop().time() >= self._until:
            self._settled[number] = _over()
            return
        self._tasks[number] = asyncio.create_task(self._call(snapshot, number))

    async def _call(self, snapshot: Any, number: int) -> "dict[str, Any]":
        if snapshot.function_name in _SLEEPS:
            seconds = snapshot.args[0] if snapshot.args else 0
            is_number = isinstance(seconds, int | float)
            await asyncio.sleep(max(0.0, min(seconds, LONGEST_SLEEP)) if is_number else 0.0)
            return {"return_value": None}
        arguments = snapshot.args
        if len(arguments) != 2 or not all(isinstance(each, str) for each in arguments):
            return failed("a tool takes a name and arguments")
        request = Request(number, *arguments)
        try:
            async with self._places:
                return succeeded(await self._host.call(request))
        except FailedCallError as error:
            return failed(str(error))
        except PausedError:
            self._paused[number] = request
            return {}

    async def _first_of(self, numbers: list[int]) -> "dict[int, dict[str, Any]]":
        """The outcomes of those of these calls that have ended, of at least one; {} if each of them waits for
        somebody, and no other call is under way.
        """
        while True:
            found = {each: self._settled.pop(each) for each in numbers if each in self._settled}
            for number in numbers:
                task = self._tasks.get(number)
                if task is not None and task.done() and number not in self._paused:
                    found[number] = self._tasks.pop(number).result()
            if found:
                return found
            under_way = [task for task in self._tasks.values() if not task.done()]
            if not under_way:
                return {}
            left = self._until - asyncio.get_running_loop().time()
            await asyncio.wait(under_way, timeout=max(left, 0.0), return_when=asyncio.FIRST_COMPLETED)
            if asyncio.get_running_loop().time() >= self._until:
                await self._time_over(under_way)

    async def _time_over(self, under_way: "list[asyncio.Task[dict[str, Any]]]") -> None:
        """Ends all calls. What was sent may have run."""
        for task in under_way:
            task.cancel()
        await asyncio.wait(under_way)
        for number, task in list(self._tasks.items()):
            if task.cancelled():
                self._settled[number] = _over()
                del self._tasks[number]

    async def _pause(self, snapshot: Any) -> Outcome:
        for number, task in self._tasks.items():
            if number not in self._paused:
                self._settled[number] = task.result()
        self._tasks = {}
        outcome = self._outcome()
        outcome.waiting, outcome.settled = tuple(self._paused.values()), self._settled
        dumped = snapshot.dump()
        outcome.snapshot = await dumped if asyncio.iscoroutine(dumped) else dumped
        return outcome

    async def _failed(self, error: Any) -> Outcome:
        if not isinstance(error, self._monty.MontyRuntimeError | self._monty.MontySyntaxError):
            return self._outcome(error=str(error)[:ERROR])
        inner = error.exception()
        text = _said(error)
        # After such an end the sandbox doesn't vouch for the variables.
        is_lost = isinstance(inner, MemoryError) or text.startswith("TimeoutError: feed time limit")
        frames = error.traceback()
        lines = tuple(frame.line for frame in frames if frame.filename == frames[0].filename)
        return self._outcome(error=text, lines=lines, state=None if is_lost else await self._state())

    async def _state(self) -> bytes | None:
        """The variables; None if they are too large, or can't be had."""
        try:
            if self.large:
                await self._session.feed_run("\n".join(f"{name} = None" for name in self.large))
            state: bytes = await self._session.dump()
        except self._monty.MontyError:
            return None
        return state if len(state) <= limits.PROGRAM_STATE else None

    def _outcome(
        self, value: str = "", error: str = "", lines: tuple[int, ...] = (), state: bytes | None = None
    ) -> Outcome:
        return Outcome(value, error, lines, self._printed.text, state)


def _said(error: Any) -> str:
    """The first `ERROR` characters of what an error of the sandbox says."""
    text: str = error.display("type-msg") if hasattr(error, "display") else str(error)
    return text[:ERROR]


def _over() -> "dict[str, Any]":
    return {"exc_type": "TimeoutError", "message": _TIME_OVER}


def _text(output: object) -> str:
    return output if isinstance(output, str) else ""
