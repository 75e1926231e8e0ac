"""A scenario as a stdio server.

The rule: it starts fast, so it imports only the standard library, msgspec and `mcpzip.wire`. `mcpzip.wire`
frames lines and matches answers; every answer passes through `distort`, which applies faults.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import UNSET

from mcpzip.model.errors import ConfigError
from mcpzip.wire import Cancelled, Closed, Error, Invalid, Notification, Peer, Result, Role, RpcError
from mcpzip.wire import Request as Asked
from mcpzip_fakes import pipes, process
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.engine import Engine, refuse_if_told
from mcpzip_fakes.eras import Handshake
from mcpzip_fakes.faults import Plan
from mcpzip_fakes.hostile import spoilt
from mcpzip_fakes.line_writer import LineWriter, Output, ReceivedLines
from mcpzip_fakes.record import Record, Writer, begun
from mcpzip_fakes.request import Refused, Request, as_object
from mcpzip_fakes.scenario import Scenario

if TYPE_CHECKING:
    from mcpzip.cassettes.cassette import Cassette  # imported only when one is played

USAGE = "usage: python -m mcpzip_fakes.stdio SCENARIO [--era legacy|modern|both] [--record FILE]"


_SESSION = 1
"""A process is one session."""


class _Arguments(msgspec.Struct):
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class StdioServer:
    """One server with one connection. It is also the `Channel` to its client."""

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        record: Writer,
        output: Output,
        make: Callable[..., Engine] = Engine,
    ) -> None:
        """make: makes the engine, as `Engine` does."""
        self._loop = asyncio.get_running_loop()
        self._plan, self._record = plan, record
        whole = Record(record.path) if record.path else None
        self._engine = make(scenario, record.event, whole, releases=whole)
        self._handshake = Handshake(self._engine)
        self._peer = Peer(role=Role.SERVER)
        self.output = output
        self._running: dict[bytes, asyncio.Task[None]] = {}
        self._deaf: set[bytes] = set()
        """The ids of running requests that ignore a cancellation."""
        self._asked: dict[int, asyncio.Future[object]] = {}
        self._seen_request = False
        self.done = asyncio.Event()
        self.exit_code = 0
        self._lines = LineWriter(output, record, self.done)
        self._arrived = ReceivedLines(record)

    # Bytes in

    def received(self, data: bytes) -> None:
        """Bytes from stdin; b"" is its end."""
        events = self._peer.receive(data) if data else self._peer.eof()
        self._arrived.received(data)
        for event in events:
            match event:
                case Asked():
                    self._request(event)
                case Notification(method="notifications/initialized"):
                    self._engine.audience.joins(_SESSION, self)
                case Cancelled():
                    if event.id not in self._deaf and (task := self._running.pop(event.id, None)):
                        task.cancel()
                case Result():
                    self._reply(event.id, msgspec.json.decode(event.result))
                case Error():
                    self._fail(event.id, event.error)
                case Invalid():
                    self._lines.send(self._peer.error(event.id, event.code, event.message))
                case Closed():
                    self._loop.call_soon(self._closed)  # requests without a delay are still answered
                case _:
                    pass  # other messages are in the record

    def _request(self, asked: Asked) -> None:
        params = _params(asked.params)
        firing = self._plan.meet(asked.method, params)
        first, self._seen_request = not self._seen_request, True
        strict = firing.get("strict-handshake")
        if strict and first and asked.method != "initialize":
            process.leave(self._record, "strict-handshake", int(strict.number("code")))
        crash = firing.get("crash")
        if crash and crash.string("when") == "before":
            self.output.flush()
            process.leave(self._record, "crash", int(crash.number("code")), crash.string("text"))
        if firing.get("silence"):
            return
        try:
            refuse_if_told(firing)
            greeting = self._handshake.admit(asked.method, params)
        except Refused as refusal:
            self._start(asked.id, self._lines.send_answer(self._refusal(asked.id, refusal), firing))
            return
        if greeting is not None:
            told = msgspec.json.encode(spoilt(asked.method, greeting, firing))
            self._start(asked.id, self._lines.send_answer(self._peer.result(asked.id, told), firing))
            return
        request = Request(
            method=asked.method,
            params=params,
            channel=self,
            version=self._handshake.request_version,
            id=msgspec.json.decode(asked.id),
            arguments=_sent_arguments(asked),
            capabilities=self._handshake.capabilities,
            client=self._handshake.client,
            session=_SESSION,
            firing=firing,
        )
        if self._engine.goes_on(request):
            self._deaf.add(asked.id)
        self._start(asked.id, self._answer(asked.id, request), request)

    def _start(self, id: bytes, work: Coroutine[None, None, None], request: Request | None = None) -> None:
        task = self._loop.create_task(work)
        self._running[id] = task

        def ended(task: asyncio.Task[None]) -> None:
            if self._running.get(id) is task:
                del self._running[id]
                self._deaf.discard(id)
            if request is not None and task.cancelled():
                self._engine.cancelled(request)

        task.add_done_callback(ended)

    async def _answer(self, id: bytes, request: Request) -> None:
        try:
            line = self._peer.result(id, await self._engine.answer(request))
        except Refused as refusal:
            line = self._refusal(id, refusal)
        await self._lines.send_answer(line, request.firing)
        await self._engine.answered(request)

    def _refusal(self, id: bytes, refusal: Refused) -> bytes:
        data = None if refusal.data is UNSET else msgspec.json.encode(refusal.data)
        return self._peer.error(id, refusal.code, refusal.message, data)

    def _closed(self) -> None:
        for task in self._running.values():
            task.cancel()
        if stay := self._plan.at("end"):
            self._loop.call_later(stay[0].number("seconds"), self.done.set)
        else:
            self.done.set()

    # Bytes out

    async def notify(self, method: str, params: JsonObject) -> None:
        """See `Channel`."""
        self._lines.send(self._peer.notify(method, msgspec.json.encode(params)))
        await self.output.roomy()

    async def hang_up(self) -> None:
        """See `Channel`."""

    async def ask(self, method: str, params: JsonObject) -> object:
        """See `Channel`."""
        id, line = self._peer.request(method, msgspec.json.encode(params))
        answer: asyncio.Future[object] = self._loop.create_future()
        self._asked[id] = answer
        self._lines.send(line)
        try:
            return await answer
        except asyncio.CancelledError:
            if cancel := self._peer.cancel(id):
                self._lines.send(cancel)
            raise
        finally:
            del self._asked[id]

    def _reply(self, id: int, result: object) -> None:
        if (answer := self._asked.get(id)) and not answer.done():
            answer.set_result(result)

    def _fail(self, id: int, error: RpcError) -> None:
        if (answer := self._asked.get(id)) and not answer.done():
            answer.set_exception(Refused(error.code, error.message))


def _params(raw: bytes | None) -> JsonObject:
    try:
        return {} if raw is None else as_object(msgspec.json.decode(raw))
    except msgspec.DecodeError:
        return {}


def _sent_arguments(asked: Asked) -> bytes:
    if asked.method != "tools/call" or asked.params is None:
        return b"{}"
    try:
        return bytes(msgspec.json.decode(asked.params, type=_Arguments).arguments)
    except msgspec.DecodeError:
        return b"{}"


async def serve(
    scenario: Scenario, plan: Plan, record: Writer, number: int, played: "Cassette | None" = None
) -> int:
    """Serve stdin and stdout until the client closes them. number: of this process on its record; played: the
    scenario's cassette. Returns the exit code."""
    loop = asyncio.get_running_loop()
    output = pipes.Output(1, loop)
    server = _connected(scenario, plan, record, output, number, played)
    pipes.read(0, loop, server.received)
    await server.done.wait()
    await output.drained()
    return server.exit_code


class Connected(Protocol):
    """A server with one connection. done: is set at its end; exit_code: that of its process then."""

    done: asyncio.Event
    exit_code: int

    def received(self, data: bytes) -> None:
        """Bytes from stdin; b"" is its end."""


def _connected(
    scenario: Scenario, plan: Plan, record: Writer, output: Output, number: int, played: "Cassette | None"
) -> Connected:
    if played is None:
        return StdioServer(scenario, plan, record, output)
    from mcpzip_fakes.replay.stdio import StdioPlayer  # only a cassette needs it

    def describing() -> StdioServer:
        from mcpzip_fakes.replay.engine import engine_maker, with_recorded_lists

        described = with_recorded_lists(scenario, played)
        return StdioServer(described, plan, record, output, engine_maker(played, number))

    return StdioPlayer(scenario, played, plan, record, output, number, describing)


def run(scenario: Scenario, record_path: str | None) -> int:
    """Run the server, from its start faults to its end. Returns the exit code. Raises CassetteError."""
    played = None
    if scenario.replay is not None:
        from mcpzip_fakes.replay.loaded import cassette  # only a cassette needs it

        played = cassette(scenario.replay.cassette, scenario.replay.ignore)
    number, record = begun(record_path, process.described("stdio", scenario.record_env))
    plan = Plan(scenario.faults, number)
    process.start(plan, record)
    code = asyncio.run(serve(scenario, plan, record, number, played))
    record.event("exit", {"reason": "end of input", "code": code})
    return code


def play(words: Sequence[str]) -> int:
    """Run the server of a command line: the scenario, then options with their values. Returns the exit code.
    Raises ConfigError if the scenario can't be used."""
    options = dict(zip(words[1::2], words[2::2], strict=True))
    scenario = Scenario.load(words[0])
    if era := options.get("--era"):
        scenario = scenario.with_era(era)
    return run(scenario.over("stdio"), options.get("--record"))


def main(argv: list[str] | None = None) -> int:
    """The command. Returns 2 for an error in its arguments or in the scenario."""
    words = sys.argv[1:] if argv is None else argv
    if len(words) % 2 == 0 or not {"--era", "--record"}.issuperset(words[1::2]):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        return play(words)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
