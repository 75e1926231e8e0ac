"""Programs in Python that call the tools: the relay's own tools ``program`` and ``approve``.

    {"code": "paid = await call_tool('shop__pay', {'id': 7})\nresult = paid"}

The rule: nothing runs twice. A call of a tool that doesn't say that it only reads waits until the client has
seen it: it is asked (legacy clients with elicitation), or told which call to approve. The variables of a
client's programs stay, also after an error.

Programs run in the relay's process, with all its rights: this is for the runner's own programs, and no
example.
"""

import ast
import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mcpzip.wire import Request, join_object, quote
from mcpzip_conformance.mutants.relay.end import RefusedError
from mcpzip_conformance.mutants.relay.keeping import LIMIT, Keeper
from mcpzip_conformance.mutants.relay.listing import has_tool
from mcpzip_conformance.mutants.relay.naming import members, own_name, text
from mcpzip_conformance.mutants.relay.search import text_result
from mcpzip_conformance.mutants.relay.session import Config, Servers, Write

RESULT = "result"
"""The variable with a program's value."""
_FORM = b'{"type":"object","properties":{}}'


class ToolError(Exception):
    """A call failed: the words of the tool or of its server."""


@dataclass(slots=True)
class Run:
    """A program that runs. request: of the client, for which it runs now; done: its result; waiting: the call
    that waits for approval; stopped, approved: that it waits, and that it need not any more."""

    request: Request
    done: asyncio.Future[bytes]
    task: asyncio.Task[None] | None = None
    waiting: tuple[str, bytes] | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    approved: asyncio.Event = field(default_factory=asyncio.Event)


class Coder(Keeper):
    """A session that runs programs. variables: of its programs; runs: those that waited, by handle."""

    own = (*Keeper.own, "program", "approve")

    def __init__(self, config: Config, write: Write, shared: Servers | None = None) -> None:
        super().__init__(config, write, shared)
        self.variables: dict[str, object] = {}
        self.runs: dict[str, Run] = {}

    async def called(self, request: Request, servers: Servers) -> bytes:
        """The result of one of its own tools."""
        params = members(request.params)
        given = members(params.get("arguments"))
        match text(params.get("name")):
            case "program":
                run = Run(request, asyncio.get_running_loop().create_future())
                run.task = self.run(self._execute(run, servers, text(given.get("code"))))
                return await self._outcome(run)
            case "approve":
                return await self._approved(request, given)
            case _:
                return await super().called(request, servers)

    async def _execute(self, run: Run, servers: Servers, code: str) -> None:
        try:
            value = await self.value_of(code, lambda name, given: self.call_tool(run, servers, name, given))
            run.done.set_result(self.shown(value))
        except Exception as error:
            run.done.set_result(self.failure(error))

    async def value_of(self, code: str, call_tool: Callable[[str, object], Awaitable[object]]) -> object:
        """The value of a program."""
        self.variables.update(call_tool=call_tool, **{RESULT: None})
        compiled = compile(code, "program", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(compiled, self.variables)
        if inspect.isawaitable(running):
            await running
        return self.variables[RESULT]

    async def _outcome(self, run: Run) -> bytes:
        """The result of a program, or the call for which it waits."""
        stopped = asyncio.ensure_future(run.stopped.wait())
        try:
            await asyncio.wait((run.done, stopped), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if run.task is not None:
                run.task.cancel()
            raise
        finally:
            stopped.cancel()
        if run.done.done():
            return run.done.result()
        handle = f"p{len(self.runs) + 1}"
        self.runs[handle] = run
        assert run.waiting is not None
        name, arguments = run.waiting
        return text_result(f"Waiting as {handle} before {name} {arguments.decode()}: approve lets it run.")

    async def _approved(self, request: Request, given: dict[str, bytes]) -> bytes:
        run = self.runs.get(text(given.get("handle")))
        wanted = (text(given.get("tool")), json.loads(given.get("arguments", b"{}")))
        if run is None or run.waiting is None or (run.waiting[0], json.loads(run.waiting[1])) != wanted:
            raise self.invalid("No program waits for this call.")
        run.request, run.waiting = request, None
        run.stopped.clear()
        run.approved.set()
        return await self._outcome(run)

    async def call_tool(self, run: Run, servers: Servers, name: str, given: object) -> object:
        """The value of a call: structured content, the texts, or the blocks. Raises ToolError."""
        arguments = json.dumps(given).encode()
        try:
            server, own = own_name(name, servers.by_name)
            if not await self.only_reads(servers, server, own):
                await self.consent(run, servers, name, arguments)
            params = join_object({"name": quote(own), "arguments": arguments})
            result = await self.whole_result(run, servers, server, params)
        except RefusedError as refused:
            raise ToolError(str(refused)) from refused
        return self.value(json.loads(result))

    async def whole_result(self, run: Run, servers: Servers, server: str, params: bytes) -> bytes:
        """The server's result of a call."""
        return await super(Keeper, self).run_tool(run.request, servers.by_name[server], params)

    async def only_reads(self, servers: Servers, server: str, tool: str) -> bool:
        """Whether a tool says that it only reads."""
        upstream = servers.by_name[server]
        await upstream.link()
        await has_tool(upstream, tool)
        hints = members(members(upstream.tools.get(tool)).get("annotations"))
        return hints.get("readOnlyHint") == b"true"

    async def consent(self, run: Run, servers: Servers, name: str, arguments: bytes) -> None:
        """Wait until the client has seen a call and wants it. Raises ToolError if it doesn't."""
        opening = servers.opening
        if not opening.modern and "elicitation" in members(opening.capabilities):
            message = f"May the program call {name} with {arguments.decode()}?"
            asked = join_object({"message": quote(message), "requestedSchema": _FORM})
            said = await self.request("elicitation/create", asked, about=run.request.id)
            if text(members(said).get("action")) != "accept":
                raise ToolError(f"You have declined the call of {name}.")
            return
        run.waiting = (name, arguments)
        run.approved.clear()
        run.stopped.set()
        await run.approved.wait()

    def value(self, result: dict[str, object]) -> object:
        """What a program gets of a result. Raises ToolError."""
        blocks = result.get("content")
        texts = [block.get("text") for block in blocks] if isinstance(blocks, list) else []
        if result.get("isError"):
            raise ToolError("\n".join(map(str, texts)))
        if "structuredContent" in result:
            return result["structuredContent"]
        return "\n".join(map(str, texts)) if all(isinstance(it, str) for it in texts) else blocks

    def shown(self, value: object) -> bytes:
        """The result with a program's value: as content, if that is blocks, else as JSON."""
        if isinstance(value, list) and value and all(isinstance(it, dict) and "type" in it for it in value):
            result = json.dumps({"content": value}).encode()
        else:
            result = text_result(json.dumps(value, ensure_ascii=False))
        if len(result) <= LIMIT:
            return result
        handle = f"k{len(self.kept) + 1}"
        self.kept[handle] = result
        return self.beginning(result, handle)

    def failure(self, error: Exception) -> bytes:
        """The result of a program that ended with an error."""
        return text_result(f"{type(error).__name__}: {error}", failed=True)
