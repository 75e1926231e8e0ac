"""One handler for each tool of mcpzip itself: the meta-tools, `proxy_status` and `proxy_refresh`.

The rule: arguments are repaired only if they can mean one thing only, and the result lists the repairs.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from mcpzip.catalog import Catalog
from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, UnknownToolError
from mcpzip.model.limits import ASKED_NAME, READ_AT_ONCE
from mcpzip.model.names import folded
from mcpzip.model.principal import Principal
from mcpzip.proxy import metatools
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.argument_repair import repair_arguments, repair_meta
from mcpzip.proxy.arguments import ARROW, ToolCall, read_call, read_name
from mcpzip.proxy.describe import described
from mcpzip.proxy.exchange import Exchange, members
from mcpzip.proxy.kept_results import is_handle, may_refer
from mcpzip.proxy.name_resolution import NameResolver
from mcpzip.proxy.reviews import Reviews
from mcpzip.proxy.search_request import SearchReport, SearchRequest, read_search_request
from mcpzip.proxy.server_prefix import candidate_servers
from mcpzip.proxy.status import ServerStatus, as_text
from mcpzip.proxy.tool_caller import ToolCaller
from mcpzip.proxy.tool_result import text_result
from mcpzip.proxy.views import Views
from mcpzip.proxy.workers import run_in_worker
from mcpzip.system.threads import in_thread

if TYPE_CHECKING:
    from mcpzip.proxy.programs import Programs

REFRESH_TIMEOUT = 10.0
"""Seconds that `proxy_refresh` waits for servers, if the call has no timeout; the listings continue after
it."""

_ADMIN_NAMES = {folded(admin.tool): admin for admin in ADMIN_TOOLS}

T = TypeVar("T")
Handler = Callable[[bytes | None, Exchange], Awaitable[bytes]]
"""Handles a call of a meta-tool: takes its arguments (JSON text, or None), returns a `CallToolResult`."""


class ToolProvider(Protocol):
    """What the handlers use of `mcpzip.proxy.proxy.Proxy`."""

    resolver: NameResolver
    views: Views
    tool_caller: ToolCaller
    reviews: Reviews
    config_notes: tuple[str, ...]

    @property
    def config(self) -> Config: ...

    @property
    def catalog(self) -> Catalog: ...

    async def search(self, request: SearchRequest, principal: Principal | None = None) -> SearchReport: ...

    def status(self, principal: Principal | None = None) -> list[ServerStatus]: ...

    def start_listing(self, principal: Principal | None = None) -> "list[asyncio.Task[Any]]": ...

    async def wait_for_rests(self, timeout: float) -> list[str]: ...


def handlers(proxy: ToolProvider) -> Mapping[str, Handler]:
    """The handler of each meta-tool and of each of mcpzip's own tools, by its name."""
    found = _Handlers(proxy)
    return {
        metatools.SEARCH: found.search_tools,
        metatools.DESCRIBE: found.describe_tool,
        metatools.EXECUTE: found.execute_tool,
        metatools.EXECUTE_READ: found.execute_read_tool,
        metatools.RUN_CODE: found.run_code,
        metatools.STATUS: found.proxy_status,
        metatools.REFRESH: found.proxy_refresh,
    }


class _Handlers:
    def __init__(self, proxy: ToolProvider) -> None:
        self._proxy = proxy
        self._made: Programs | None = None

    async def search_tools(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        settings = self._proxy.config.search
        request = read_search_request(arguments, settings.default_limit)
        if exchange.trace is None:
            report = await self._proxy.search(request, exchange.principal)
        else:
            with exchange.trace.search():
                report = await self._proxy.search(request, exchange.principal)
        self._proxy.tool_caller.searched(request.query, report.results, exchange)
        from mcpzip.proxy.search_reply import search_result  # imported by the search

        reads = self._proxy.tool_caller.reads or ()  # without any, nothing is said of them
        # In a thread, because the servers choose the length of the schemas that the reply summarizes.
        return await run_in_worker(
            lambda: search_result(
                request, report, time.time(), settings.max_tokens, details=settings.details, reads=reads
            ),
            "reply",
        )

    async def describe_tool(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        name = read_name(arguments)
        if (admin := self._admin_tool(name, exchange)) is not None:
            about = f"{admin.tool}: {admin.description}. It takes no arguments."
            return text_result(f"{about} {self._proxy.tool_caller.runner_note(admin)}".rstrip())
        entry, _ = await self._proxy.resolver.resolve(name, None, exchange.principal)
        record = self._proxy.views.of(exchange.principal).catalog.servers.get(entry.server)
        if record is None:  # the server was removed from the config meanwhile
            raise UnknownToolError(name)
        note = self._proxy.tool_caller.note(entry)
        if len(entry.raw) <= READ_AT_ONCE:
            return described(entry, record, time.time(), note)
        return await run_in_worker(lambda: described(entry, record, time.time(), note), "parse")

    def execute_tool(self, arguments: bytes | None, exchange: Exchange) -> Awaitable[bytes]:
        return self._execute(read_call(arguments), exchange)

    def execute_read_tool(self, arguments: bytes | None, exchange: Exchange) -> Awaitable[bytes]:
        return self._execute(read_call(arguments, metatools.EXECUTE_READ), exchange, only_reads=True)

    async def run_code(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        programs = await self._programs()
        run = programs.run(arguments, exchange)
        return await self._proxy.tool_caller.run_program(run, arguments, exchange)

    async def _programs(self) -> "Programs":
        """Those of all clients. What runs them is imported with the first, because most agents run none."""
        if self._made is None:
            made = await in_thread(_programs_class, "programs")
            if self._made is None:
                self._made = self._proxy.tool_caller.programs = made(self._proxy)
        return self._made

    async def _execute(self, call: ToolCall, exchange: Exchange, *, only_reads: bool = False) -> bytes:
        """Runs ``call``. only_reads: whether a tool that may do more than read is refused."""
        proxy = self._proxy
        if (admin := self._admin_tool(call.name, exchange)) is not None:
            if only_reads:
                proxy.tool_caller.check_reads(admin)
            is_status = admin.tool == metatools.STATUS
            done = self._status_text(exchange) if is_status else self._refreshed(call.timeout, exchange)
            result = text_result(await done)
            if admin.tool == call.name:
                return result
            return repair_meta(result, [f"name: {call.name} {ARROW} {admin.tool}"])
        results = proxy.tool_caller.results
        # Most calls name a tool that is listed, and only that: these take none of the steps for the others.
        if is_handle(call.name) and (part := await results.read(call, exchange.client)) is not None:
            return part
        known, name_repair = proxy.resolver.exact(call.name, exchange.principal), None
        if known is not None:
            entry = known
        else:
            with proxy.tool_caller.looking_up(call.name, call.arguments, exchange):
                entry, name_repair = await proxy.resolver.resolve(call.name, call.timeout, exchange.principal)
        if only_reads:  # before a model is told how to correct the arguments
            proxy.tool_caller.check_call_reads(entry, call.arguments, exchange)
        if call.select or call.run:
            self._check_beside(call, entry)
        about: tuple[str, ...] = ()
        if may_refer(call.arguments):
            filled, about = await results.fill(call.arguments, exchange.client)
            if about or filled is not call.arguments:
                call = replace(call, arguments=filled)
        if _is_large(entry, call):
            repaired = await run_in_worker(lambda: repair_arguments(call, entry), "parse")
        else:
            repaired = repair_arguments(call, entry)
        repairs = (name_repair, *repaired.repairs) if name_repair else repaired.repairs
        if call.run:
            return await (await self._programs()).execute(
                call.run, entry, repaired, exchange, only_reads=only_reads, about=about
            )
        result = await proxy.tool_caller.execute(
            entry,
            repaired.arguments,
            repaired.timeout,
            exchange,
            only_reads=only_reads,
            about=about,
            repairs=len(repairs),
        )
        if call.select or results.may_keep(entry, result, exchange.client):
            shown = await results.shown(entry, result, exchange.client, call.through, call.select)
            if shown is not result:
                proxy.tool_caller.calls.kept(exchange.record)
            result = shown
        return repair_meta(result, repairs) if repairs else result

    def _check_beside(self, call: ToolCall, entry: Entry) -> None:
        """Raises InvalidArgumentsError if ``select`` or ``run`` beside the arguments is not for us."""
        has_programs = self._proxy.config.code.enabled or self._made is not None
        for key, value, means_ours in (("select", call.select, True), ("run", call.run, has_programs)):
            if value and (not means_ours or _has_parameter(entry, key)):
                raise InvalidArgumentsError(f"{key!r} stands beside 'arguments'; put it inside 'arguments'.")
        if call.run and call.select:
            raise InvalidArgumentsError("'select' and 'run' don't go together: the reply is the program's.")

    async def proxy_status(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        return text_result(await self._status_text(exchange))

    async def proxy_refresh(self, arguments: bytes | None, exchange: Exchange) -> bytes:
        return text_result(await self._refreshed(None, exchange))

    async def _status_text(self, exchange: Exchange) -> str:
        proxy, principal = self._proxy, exchange.principal
        # What is said of the config is for those who can change it.
        notes = proxy.config_notes if proxy.views.of(principal).is_whole else ()
        return as_text(proxy.status(principal), time.time(), proxy.config.path, notes)

    async def _refreshed(self, timeout: float | None, exchange: Exchange) -> str:
        """The status after all servers were listed, prompts and resources too, or ``timeout`` seconds."""
        now = asyncio.get_running_loop().time
        until = now() + (timeout or REFRESH_TIMEOUT)
        if listings := self._proxy.start_listing(exchange.principal):
            await asyncio.wait(listings, timeout=until - now())
            await self._proxy.wait_for_rests(until - now())
        return await self._status_text(exchange)

    def _admin_tool(self, name: str, exchange: Exchange) -> Entry | None:
        """mcpzip's own tool that ``name`` spells, ignoring case and separators. None for any
        other, and for a misspelt name that begins with a configured server's name. Which tools servers list
        doesn't matter, because a server can list any name.
        """
        admin = _ADMIN_NAMES.get(folded(name)) if len(name) <= ASKED_NAME else None
        if admin is None or name == admin.tool:
            return admin
        servers = self._proxy.views.of(exchange.principal).config.servers
        return None if candidate_servers(name, servers) else admin


def _programs_class() -> "type[Programs]":
    import mcpzip.proxy.call_guard  # noqa: F401 # it decides about their calls
    from mcpzip.proxy.programs import Programs

    return Programs


def _has_parameter(entry: Entry, name: str) -> bool:
    schema = members(members(entry.raw).get("inputSchema"))
    return name in members(schema.get("properties"))


def _is_large(entry: Entry, call: ToolCall) -> bool:
    """Whether ``entry`` and the arguments of ``call`` are so large, or so wrong, that they are read in a
    thread.
    """
    return len(entry.raw) + len(call.arguments) > READ_AT_ONCE or bool(call.error)
