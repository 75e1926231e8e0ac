"""Faults of programs that call tools."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import cast

from mcpzip.wire import Request
from mcpzip_conformance.mutants.faults.fault import Fault
from mcpzip_conformance.mutants.relay.end import GoneError
from mcpzip_conformance.mutants.relay.naming import members, text
from mcpzip_conformance.mutants.relay.programs import Coder, Run, ToolError
from mcpzip_conformance.mutants.relay.relay import Parts
from mcpzip_conformance.mutants.relay.search import text_result
from mcpzip_conformance.mutants.relay.session import Servers

Call = Callable[[str, object], Awaitable[object]]


class UncaughtError(BaseException):
    """An error that no program catches."""


class EndsProgram(Coder):
    """A failed call ends the program, whatever that does about it."""

    async def value_of(self, code: str, call_tool: Call) -> object:
        async def call(name: str, given: object) -> object:
            try:
                return await call_tool(name, given)
            except ToolError as error:
                raise UncaughtError(str(error)) from error

        try:
            return await super().value_of(code, call)
        except UncaughtError as error:
            raise ToolError(str(error)) from error


class MasksErrors(Coder):
    def failure(self, error: Exception) -> bytes:
        return text_result("The program failed.", failed=True)


class WritesImagesAsText(Coder):
    def value(self, result: dict[str, object]) -> object:
        value = super().value(result)
        return json.dumps(value) if isinstance(value, list) else value


class FirstText(Coder):
    """A call's value is its first text."""

    def value(self, result: dict[str, object]) -> object:
        if result.get("isError"):
            return super().value(result)
        blocks = cast(list[dict[str, object]], result.get("content"))
        return next((str(block["text"])[:5] for block in blocks if "text" in block), "")


class CutsValues(Coder):
    """A program gets what a client would get at first."""

    def value(self, result: dict[str, object]) -> object:
        small = len(json.dumps(result)) < 100_000
        return super().value(result) if small else "too long"


class AsksNobody(Coder):
    async def only_reads(self, servers: Servers, server: str, tool: str) -> bool:
        return True


class TrustsUnannotated(Coder):
    """What says nothing of itself is taken for harmless."""

    async def only_reads(self, servers: Servers, server: str, tool: str) -> bool:
        if await super().only_reads(servers, server, tool):
            return True
        return b'"annotations"' not in servers.by_name[server].tools.get(tool, b"")


class RunsBeforeAsking(Coder):
    """Asks, and has called already."""

    async def consent(self, run: Run, servers: Servers, name: str, arguments: bytes) -> None:
        server, own = name.split("__", 1)
        params = b'{"name":"%b","arguments":%b}' % (own.encode(), arguments)
        await self.whole_result(run, servers, server, params)
        await super().consent(run, servers, name, arguments)


class StartsAgain(Coder):
    """An approved program starts from its beginning, with that call allowed."""

    codes: dict[str, str] | None = None
    allowed: frozenset[str] = frozenset()

    async def called(self, request: Request, servers: Servers) -> bytes:
        given = members(members(request.params).get("arguments"))
        match text(members(request.params).get("name")):
            case "program":
                self.code = text(given.get("code"))
            case "approve":
                self.allowed |= {text(given.get("tool"))}
                again = json.dumps({"name": "program", "arguments": {"code": self.code}}).encode()
                return await super().called(Request(request.id, request.method, again), servers)
        return await super().called(request, servers)

    async def consent(self, run: Run, servers: Servers, name: str, arguments: bytes) -> None:
        if name not in self.allowed:
            await super().consent(run, servers, name, arguments)

    code = ""


class RepeatsProgram(Coder):
    """Runs a program that failed a second time."""

    async def value_of(self, code: str, call_tool: Call) -> object:
        try:
            return await super().value_of(code, call_tool)
        except Exception:
            return await super().value_of(code, call_tool)


class RepeatsCall(Coder):
    """Makes a call again whose server has gone."""

    async def whole_result(self, run: Run, servers: Servers, server: str, params: bytes) -> bytes:
        try:
            return await super().whole_result(run, servers, server, params)
        except GoneError:
            return await super().whole_result(run, servers, server, params)


class ForgetsVariables(Coder):
    async def value_of(self, code: str, call_tool: Call) -> object:
        self.variables.clear()
        return await super().value_of(code, call_tool)


class OneAfterAnother(Coder):
    """Makes one call at a time."""

    async def whole_result(self, run: Run, servers: Servers, server: str, params: bytes) -> bytes:
        async with self.turn:
            return await super().whole_result(run, servers, server, params)

    @cached_property
    def turn(self) -> asyncio.Lock:
        return asyncio.Lock()


class IgnoresCancellation(Coder):
    """A program goes on whose request was cancelled."""

    async def _outcome(self, run: Run) -> bytes:
        run.task = None
        return await super()._outcome(run)


FAULTS: Mapping[str, Fault] = {
    "ends-program": Fault(
        "ends a program at the first error", "programs.error-caught", Parts(code=EndsProgram), "code"
    ),
    "masks-errors": Fault(
        "says that a program failed, and not why", "programs.error-told", Parts(code=MasksErrors), "code"
    ),
    "writes-images-as-text": Fault(
        "gives programs images as text", "programs.image", Parts(code=WritesImagesAsText), "code"
    ),
    "first-text": Fault(
        "gives programs the beginning of the first text",
        "programs.value",
        Parts(code=FirstText),
        "code",
        also=("programs.approved",),
    ),
    "cuts-values": Fault(
        "gives programs large results cut", "programs.large-result", Parts(code=CutsValues), "code"
    ),
    "asks-nobody": Fault(
        "runs any call of a program", "programs.destructive-is-seen", Parts(code=AsksNobody), "code"
    ),
    "trusts-unannotated": Fault(
        "takes a tool without hints for harmless",
        "programs.unannotated-is-seen",
        Parts(code=TrustsUnannotated),
        "code",
    ),
    "runs-before-asking": Fault(
        "asks about a call that has run", "programs.approved", Parts(code=RunsBeforeAsking), "code"
    ),
    "starts-again": Fault(
        "starts an approved program from the beginning",
        "programs.approved",
        Parts(code=StartsAgain),
        "code",
    ),
    "repeats-program": Fault(
        "runs a failed program again", "programs.once", Parts(code=RepeatsProgram), "code"
    ),
    "repeats-call": Fault(
        "makes a call of a program again if its server dies", "programs.once", Parts(code=RepeatsCall), "code"
    ),
    "forgets-variables": Fault(
        "forgets the variables of a program", "programs.continued", Parts(code=ForgetsVariables), "code"
    ),
    "one-after-another": Fault(
        "makes the calls of a program one by one",
        "programs.side-by-side",
        Parts(code=OneAfterAnother),
        "code",
    ),
    "goes-on-cancelled": Fault(
        "goes on with a cancelled program", "programs.cancelled", Parts(code=IgnoresCancellation), "code"
    ),
}
