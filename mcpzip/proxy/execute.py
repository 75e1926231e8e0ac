"""Running a tool: from a name and arguments to the upstream's own answer.

The rules: the result's bytes are the upstream's; the call is sent at most once unless the tool says that
twice does no harm (``readOnlyHint`` or ``idempotentHint``, spec: server/tools `ToolAnnotations`); when it may
have run without an answer, that is said.
"""

from mcpzip.model.entry import Entry
from mcpzip.model.errors import UpstreamError, UpstreamLostError, UpstreamTimeoutError
from mcpzip.proxy.calls import Caller
from mcpzip.proxy.counterpart import Request
from mcpzip.proxy.exchange import Exchange


async def run(
    caller: Caller, exchange: Exchange, entry: Entry, fields: dict[str, bytes], timeout: float
) -> bytes:
    """The upstream's `CallToolResult`, untouched, or what it asks first.

    fields: the members of the params but the name, as JSON texts. timeout: seconds. Raises UpstreamError and
    its kinds, RefusedError; the text of an error that leaves the outcome open says so.
    """
    request = Request(
        entry.server,
        "tools/call",
        fields,
        timeout,
        repeatable=entry.read_only or entry.idempotent,
        definition=entry.raw,
    )
    try:
        return await caller.send(exchange, request)
    except UpstreamTimeoutError as error:
        raise _open_outcome(entry, error) from error
    except UpstreamLostError as error:
        if error.may_have_run:
            raise _open_outcome(entry, error) from error
        raise


def _open_outcome(entry: Entry, error: UpstreamError) -> UpstreamError:
    if entry.read_only:
        return UpstreamError(entry.server, error.reason, "It only reads: calling it again is safe.")
    return UpstreamError(
        entry.server,
        error.reason,
        f"{entry.tool} may have run: check before calling it again.",
    )
