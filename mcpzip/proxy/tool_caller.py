"""Calls of tools: from a catalog entry and arguments to the upstream's result.

The rules: the result's bytes are the upstream's; a call is sent at most once, unless the tool declares that
running it twice does no harm (``readOnlyHint`` or ``idempotentHint``, spec: server/tools `ToolAnnotations`);
an error after which the tool may have run says so.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mcpzip.model.entry import Entry
from mcpzip.model.errors import (
    CallRefusedError,
    InsufficientScopeError,
    McpzipError,
    UnknownToolError,
    UpstreamError,
    UpstreamLostError,
    UpstreamTimeoutError,
)
from mcpzip.model.principal import Principal
from mcpzip.model.quoting import named
from mcpzip.proxy import metatools
from mcpzip.proxy.call import UpstreamRequest, timeout_of
from mcpzip.proxy.call_records import CallRecords
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import ENVELOPE_MEMBERS, Client, Exchange
from mcpzip.proxy.heard import Heard
from mcpzip.proxy.input_required import is_input_required
from mcpzip.proxy.kept_results import Results
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.refresh import Refresher
from mcpzip.proxy.statistics import Statistics
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.tool_usage import is_success
from mcpzip.proxy.uri_sources import UriSources
from mcpzip.system.event_log import more_about
from mcpzip.wire import join_object, quote

if TYPE_CHECKING:
    from mcpzip.config import Config
    from mcpzip.config.schema import RateLimit
    from mcpzip.policy.question import Confirm
    from mcpzip.proxy.call_guard import CallGuard
    from mcpzip.proxy.rate_limits import RateLimits
    from mcpzip.proxy.read_tools import ReadTools
    from mcpzip.proxy.shared_rates import SharedRates
    from mcpzip.search import Results as SearchResults

MAX_AGE_IN_USE = 600.0
"""Seconds after which a tool list is renewed when a call has connected to its server anyway."""
_OURS = "mcpzip"
"""What is recorded as the server of our own tools."""


class ClientResources(Protocol):
    """What is kept for clients, and freed when they leave."""

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        ...

    async def close(self) -> None:
        """Ends all."""
        ...


class ToolCaller:
    """Sends `tools/call` requests upstream. results: those that are kept. programs: those that agents run
    (`proxy.programs`), None until there is one. calls: the last ones.
    """

    def __init__(
        self,
        current: CurrentConfig,
        pipeline: CallPipeline,
        uri_sources: UriSources,
        catalog_state: CatalogState,
        refresher: Refresher,
        tool_search: ToolSearch,
        statistics: Statistics,
        heard: Heard,
        warn: Callable[[str], None],
    ) -> None:
        self._current, self._uri_sources = current, uri_sources
        self._catalog_state, self._refresher, self._tool_search = catalog_state, refresher, tool_search
        self._statistics, self._heard, self._warn = statistics, heard, warn
        self.check_access: Callable[[Principal | None, Entry], None] = lambda principal, entry: None
        """Raises what keeps somebody from calling a tool: every call passes it, however it was found."""
        self.offered: Callable[[Principal | None, str], Entry | None] = lambda principal, name: (
            catalog_state.visible.get(name)
        )
        """Finds the tool with a name as it is offered now to those who may use it. By whom it is called."""
        self.pipeline_of: Callable[[Principal | None, str], CallPipeline] = lambda principal, server: pipeline
        """The way of somebody's requests to a server."""
        self.results, self.calls = Results(current, statistics), CallRecords()
        self.programs: ClientResources | None = None
        self._rates: RateLimits | None = None
        self._rates_of: tuple[RateLimit, ...] = ()
        self._shared_rates: SharedRates | None = None
        self._guard: CallGuard | None = None
        self._reads: ReadTools | None = None
        self._reads_of: Config | None = None

    @property
    def guard(self) -> "CallGuard":
        """The policy. It is imported when there is one, so that a start without doesn't load it."""
        if self._guard is None:
            from mcpzip.proxy.call_guard import CallGuard

            self._guard = CallGuard(self._current, lambda *asked: self.offered(*asked), self._warn)
        return self._guard

    def note(self, entry: Entry) -> str:
        """What the policy says of calls of ``entry``, and what runs it, as sentences; "" for nothing."""
        if not self._current.has_policy:
            return self.runner_note(entry)
        note = self.guard.note(entry)
        if self.guard.decisions.of(entry).decision == "deny":
            return note
        return f"{note} {self.runner_note(entry)}".strip()

    # --- tools that only read ---

    @property
    def reads(self) -> "ReadTools | None":
        """The tools that `execute_read_tool` runs; None if the config doesn't offer it."""
        config = self._current.config
        if not config.split:
            return None
        if self._reads is None or self._reads_of is not config:
            from mcpzip.proxy.read_tools import ReadTools  # most configs don't

            self._reads, self._reads_of = ReadTools(config), config
        return self._reads

    def runner(self, entry: Entry) -> str:
        """The name of the meta-tool for ``entry``."""
        reads = self.reads
        return metatools.EXECUTE_READ if reads is not None and entry in reads else metatools.EXECUTE

    def runner_note(self, entry: Entry) -> str:
        """`runner` as a sentence; "" if there is but one."""
        return "" if self.reads is None else f"Run it with {self.runner(entry)}."

    def check_reads(self, entry: Entry) -> None:
        """Raises CallRefusedError if a call of ``entry`` may do more than read."""
        reads = self.reads
        if reads is None:  # since an edit of the config
            raise CallRefusedError(
                f"{metatools.EXECUTE_READ} is not offered any more. Nothing ran: use {metatools.EXECUTE}.",
                "changed",
            )
        reads.check(entry)

    def check_call_reads(self, entry: Entry, arguments: bytes, exchange: Exchange) -> None:
        """The same for a call that begins. If it is refused, that is recorded, and in the audit log."""
        try:
            self.check_reads(entry)
        except CallRefusedError as error:
            record = self.calls.begin(exchange, entry.server, entry.tool, len(arguments))
            if not self._current.has_policy:
                self.calls.failed(record, error)
                raise
            refusal = self.guard.refused(entry, arguments, exchange, error)
            self.calls.failed(record, refusal)
            raise refusal from error

    @contextmanager
    def looking_up(self, name: str, arguments: bytes, exchange: Exchange) -> Iterator[None]:
        """While the tool of a call is looked up: see `note_no_access`."""
        try:
            yield
        except (UnknownToolError, InsufficientScopeError):
            self.note_no_access(name, arguments, exchange)
            raise

    def note_no_access(self, name: str, arguments: bytes, exchange: Exchange) -> None:
        """Has it written to the audit log that a client called ``name`` and was told that there is no such
        tool, if there is one that it may not use.
        """
        if self._current.config.audit is None or (entry := self.offered(exchange.principal, name)) is None:
            return
        try:
            self.check_access(exchange.principal, entry)
        except McpzipError:
            self.guard.no_access(entry, arguments, exchange)

    def _check_still_reads(self, entry: Entry, principal: Principal | None) -> None:
        """Raises CallRefusedError if ``entry`` was withdrawn since the call began, or may do more than read
        now: by another definition, or by an edit of the config.
        """
        self.check_reads(self.current(entry, principal))

    def current(self, entry: Entry, principal: Principal | None) -> Entry:
        """``entry`` as it is offered now. principal: who calls it. Raises CallRefusedError if it was
        withdrawn meanwhile.
        """
        now = self.offered(principal, entry.name)
        if now is None:
            raise CallRefusedError(f"{named(entry.name)} was withdrawn meanwhile. Nothing ran.", "changed")
        return now

    def saw(self, client: Client, server: str) -> None:
        """``client`` is sent a prompt or a resource of ``server``."""
        if self._current.config.policy.flows:
            self.guard.saw(client, server)

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        self._tool_search.remove_client(client)
        self.results.remove_client(client)
        if self.programs is not None:
            self.programs.remove_client(client)
        if self._guard is not None:
            self._guard.remove_client(client)

    async def close(self) -> None:
        """Writes the rest of the audit log, forgets the kept results, and ends what runs programs and what
        counts.
        """
        if self.programs is not None:
            await self.programs.close()
        self.results.close()
        if self._guard is not None:
            await self._guard.close()
        if self._shared_rates is not None:
            await self._shared_rates.close()

    def searched(self, query: str, results: "SearchResults", exchange: Exchange) -> None:
        """A client has searched for ``query``, and is sent ``results``."""
        self._tool_search.record_search(query, results, exchange)

    # --- calls ---

    async def execute(
        self,
        entry: Entry,
        arguments: bytes,
        timeout: float | None,
        exchange: Exchange,
        *,
        only_reads: bool = False,
        about: tuple[str, ...] = (),
        once: bool = False,
        confirm: "Confirm | None" = None,
        check: Callable[[], None] | None = None,
        repairs: int = 0,
    ) -> bytes:
        """Calls a tool for a meta-tool, counts a successful use, and returns the upstream's result
        untouched, or an `input_required` result.

        arguments: a JSON object as text. timeout: seconds, None for the configured timeout. only_reads:
        whether it is refused if the tool may do more than read. about: sentences for a person who is asked:
        which arguments are kept results. once: whether it is never sent again, whatever the tool declares.
        confirm: why a person is asked even if the policy lets it run. check: see `UpstreamRequest`. repairs:
        how many were made before. Raises JsonRpcError, CallRefusedError, UpstreamError and its subclasses.
        """
        self.check_access(exchange.principal, entry)
        fields = {"name": quote(entry.tool), "arguments": arguments}
        # Before it is sent, and each time that it is sent again: a person may have been asked meanwhile.
        check = partial(self._check_still_reads, entry, exchange.principal) if only_reads else check

        record = self.calls.begin(exchange, entry.server, entry.tool, len(arguments))
        record.repairs = repairs
        made: Awaitable[tuple[bytes, bool]]
        if self._current.has_policy or confirm is not None:
            send = partial(self._call, entry, fields, timeout, exchange, check, once=once)
            made = self.guard.call(entry, arguments, exchange, send, about, confirm)
        else:
            made = self._call(entry, fields, timeout, exchange, check, once=once)
        result, succeeded = await self.calls.recorded(record, made)
        if succeeded:
            self._tool_search.record_use(entry, exchange)
        return result

    async def call_directly(self, entry: Entry, exchange: Exchange) -> bytes:
        """Calls a tool that `tools/list` shows. Its arguments are not repaired: the client has its schema.
        Raises as `execute` does.
        """
        self.check_access(exchange.principal, entry)
        fields = {key: value for key, value in exchange.fields.items() if key not in ENVELOPE_MEMBERS}
        fields["name"] = quote(entry.tool)
        arguments = fields.get("arguments", b"{}")

        def send() -> "Awaitable[tuple[bytes, bool]]":
            return self._call(entry, fields, None, exchange)

        record = self.calls.begin(exchange, entry.server, entry.tool, len(arguments))
        made = self.guard.call(entry, arguments, exchange, send) if self._current.has_policy else send()
        return (await self.calls.recorded(record, made))[0]

    async def call_unlisted(
        self, server: str, name: str, exchange: Exchange, forward: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Calls a tool that ``server`` doesn't list, in ``transparent``, by ``forward``. Raises as `execute`
        does.
        """

        async def send() -> tuple[bytes, bool]:
            result = await forward()
            if not is_success(result) and not is_input_required(result):
                self._heard.failed(exchange, server, name, result)
            return result, False

        arguments = exchange.fields.get("arguments", b"{}")
        record, made = self.calls.begin(exchange, server, name, len(arguments)), send
        if self._current.has_policy:
            entry = Entry.parse(server, join_object({"name": quote(name)}))
            made = partial(self.guard.call, entry, arguments, exchange, send)
        return (await self.calls.recorded(record, made()))[0]

    async def run_program(
        self, run: "Awaitable[bytes]", arguments: bytes | None, exchange: Exchange
    ) -> bytes:
        """What ``run`` returns, which runs a program for ``exchange``: it is recorded as a call is."""

        async def made() -> tuple[bytes, bool]:
            result = await run
            return result, is_success(result)

        record = self.calls.begin(exchange, _OURS, metatools.RUN_CODE, len(arguments or b""))
        return (await self.calls.recorded(record, made()))[0]

    async def _call(
        self,
        entry: Entry,
        fields: dict[str, bytes],
        timeout: float | None,
        exchange: Exchange,
        check: Callable[[], None] | None = None,
        *,
        once: bool = False,
    ) -> tuple[bytes, bool]:
        """The result, and whether it is a success. fields: the members of the upstream request's params, as
        JSON texts. check: see `UpstreamRequest`. once: see `execute`.
        """
        request = UpstreamRequest(
            entry.server,
            "tools/call",
            fields,
            timeout or timeout_of(self._current.config, entry.server),
            repeatable=not once and (entry.read_only or entry.idempotent),
            definition=entry.raw,
            check=check,
        )
        principal, ended = exchange.principal, None
        if principal is not None and self._current.config.rate_limits:
            ended = await self._begin(principal, entry)
        succeeded = uncounted = False
        try:
            result = await self.pipeline_of(principal, entry.server).send(exchange, request)
            succeeded = is_success(result)
            # It is called once more then, with what the client answers.
            uncounted = not succeeded and is_input_required(result)
            if not (succeeded or uncounted):
                self._heard.failed(exchange, entry.server, entry.tool, result)
        except CallRefusedError:
            uncounted = True
            raise
        except (UpstreamTimeoutError, UpstreamLostError) as error:
            if isinstance(error, UpstreamLostError) and not error.may_have_run:
                raise
            exited = isinstance(error, UpstreamLostError) and error.exited
            more = more_about(entry.server) if exited else ""
            raise _unknown_outcome(entry, error.reason, more) from error
        finally:
            if ended is not None:
                ended()
            if not uncounted:
                self._statistics.count_call(entry.server, failed=not succeeded)
        self._uri_sources.record(exchange.client, entry.server, "tools/call", result)
        if principal is not None and entry.server in self._current.per_user:
            return result, succeeded  # it is listed again for this person by itself
        record = self._catalog_state.catalog.servers.get(entry.server)
        if record is None or entry.server not in self._current.enabled:
            return result, succeeded  # the config was edited during the call
        if record.stale or time.time() - (record.fetched_at or 0) > MAX_AGE_IN_USE:
            self._refresher.start(entry.server, MAX_AGE_IN_USE)
        return result, succeeded

    async def _begin(self, principal: Principal, entry: Entry) -> Callable[[], None]:
        """Counts a call for the limits of ``principal``; what it returns is called at its end. Raises
        TooManyCallsError and NotCountedError.
        """
        limits = self._current.config.rate_limits
        if self._rates is None or self._rates_of != limits:
            from mcpzip.proxy.rate_limits import RateLimits  # most configs have none

            shared = self._share_counts()
            self._rates = RateLimits(limits, shared=shared, statistics=self._statistics)
            self._rates_of = limits
        return await self._rates.begin(principal, entry)

    def start(self) -> None:
        """Connects to the store if calls are counted there."""
        config = self._current.config
        counts = config.http.has_people and any(limit.calls for limit in config.rate_limits)
        if counts and (shared := self._share_counts()) is not None:
            shared.connect()

    def _share_counts(self) -> "SharedRates | None":
        """What counts calls in the store of the config; None without one."""
        store = self._current.config.store
        if self._shared_rates is None and store is not None:
            from mcpzip.proxy.shared_rates import SharedRates

            self._shared_rates = SharedRates(store, self._warn)
        return self._shared_rates


def _unknown_outcome(entry: Entry, reason: str, more: str) -> UpstreamError:
    """The error for a call of ``entry`` that failed for ``reason`` after it may have run. more: its end."""
    remedy = f"{entry.tool} may have run: check before calling it again."
    if entry.read_only:
        remedy = "It only reads: calling it again is safe."
    return UpstreamError(entry.server, reason, f"{remedy} {more}".rstrip())
