"""Calls of tools: from a catalog entry and arguments to the upstream's result.

The rules: the result's bytes are the upstream's; a call is sent at most once, unless the tool declares that
running it twice does no harm (``readOnlyHint`` or ``idempotentHint``, spec: server/tools `ToolAnnotations`);
an error after which the tool may have run says so.
"""

from mcpzip.config import Config
from mcpzip.model.entry import Entry
from mcpzip.model.errors import UpstreamError, UpstreamLostError, UpstreamTimeoutError
from mcpzip.proxy.call import UpstreamRequest, timeout_of
from mcpzip.proxy.catalog_state import CatalogState
from mcpzip.proxy.exchange import ENVELOPE_MEMBERS, Exchange
from mcpzip.proxy.pipeline import CallPipeline
from mcpzip.proxy.refresh import Refresher
from mcpzip.proxy.tool_search import ToolSearch
from mcpzip.proxy.uri_sources import UriSources
from mcpzip.wire import quote


class ToolCaller:
    """Sends `tools/call` requests upstream."""

    def __init__(
        self,
        config: Config,
        pipeline: CallPipeline,
        uri_sources: UriSources,
        catalog_state: CatalogState,
        refresher: Refresher,
        tool_search: ToolSearch,
    ) -> None:
        self._config, self._pipeline, self._uri_sources = config, pipeline, uri_sources
        self._catalog_state, self._refresher, self._tool_search = catalog_state, refresher, tool_search

    async def execute(
        self, entry: Entry, arguments: bytes, timeout: float | None, exchange: Exchange
    ) -> bytes:
        """Calls a tool for `execute_tool`, counts a successful use, and returns the upstream's result
        untouched, or an `input_required` result.

        arguments: a JSON object as text. timeout: seconds, None for the configured timeout. Raises
        JsonRpcError, UpstreamError and its subclasses.
        """
        fields = {"name": quote(entry.tool), "arguments": arguments}
        result = await self._call(entry, fields, timeout, exchange)
        self._tool_search.record_use(entry, result)
        return result

    async def call_directly(self, entry: Entry, exchange: Exchange) -> bytes:
        """Calls a tool that `tools/list` shows. Its arguments are not repaired: the client has its schema.
        Raises as `execute` does.
        """
        fields = {key: value for key, value in exchange.fields.items() if key not in ENVELOPE_MEMBERS}
        return await self._call(entry, {**fields, "name": quote(entry.tool)}, None, exchange)

    async def _call(
        self, entry: Entry, fields: dict[str, bytes], timeout: float | None, exchange: Exchange
    ) -> bytes:
        """fields: the members of the upstream request's params, as JSON texts."""
        request = UpstreamRequest(
            entry.server,
            "tools/call",
            fields,
            timeout or timeout_of(self._config, entry.server),
            repeatable=entry.read_only or entry.idempotent,
            definition=entry.raw,
        )
        try:
            result = await self._pipeline.send(exchange, request)
        except (UpstreamTimeoutError, UpstreamLostError) as error:
            if isinstance(error, UpstreamLostError) and not error.may_have_run:
                raise
            raise _unknown_outcome(entry, error.reason) from error
        self._uri_sources.record(exchange.client, entry.server, "tools/call", result)
        if self._catalog_state.catalog.servers[entry.server].stale:  # the server works again: list it
            self._refresher.start(entry.server)
        return result


def _unknown_outcome(entry: Entry, reason: str) -> UpstreamError:
    """The error for a call of ``entry`` that failed for ``reason`` after it may have run."""
    if entry.read_only:
        return UpstreamError(entry.server, reason, "It only reads: calling it again is safe.")
    return UpstreamError(entry.server, reason, f"{entry.tool} may have run: check before calling it again.")
