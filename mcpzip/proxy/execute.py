"""`execute_tool`: from a name and arguments to the upstream's own answer.

The rules: the result's bytes are the upstream's; the call is sent at most once unless the tool says that
twice does no harm (``readOnlyHint`` or ``idempotentHint``, spec: server/tools `ToolAnnotations`); when it may
have run without an answer, that is said.
"""

from mcpzip.model.entry import Entry
from mcpzip.model.errors import UpstreamError, UpstreamLostError, UpstreamTimeoutError
from mcpzip.transport.base import ProgressSink
from mcpzip.transport.pool import Pool
from mcpzip.wire import REQUEST_KEYS, join_object, quote, split_object, without_members

_OF_ONE_LEG = ("progressToken", *REQUEST_KEYS)
"""Keys of ``_meta`` that the client says to us and we say anew to the upstream."""


def call_params(tool: str, arguments: bytes, meta: bytes | None) -> bytes:
    """The params of the upstream `tools/call`: the client's ``_meta`` goes along, less what is of its leg."""
    fields = {"name": quote(tool), "arguments": arguments}
    if meta is not None:
        kept = without_members(meta, _OF_ONE_LEG)
        if split_object(kept):
            fields["_meta"] = kept
    return join_object(fields)


async def run(
    pool: Pool,
    entry: Entry,
    arguments: bytes,
    *,
    meta: bytes | None,
    timeout: float,
    on_progress: ProgressSink | None,
) -> bytes:
    """The upstream's `CallToolResult`, untouched. timeout: seconds.

    Raises UpstreamError and its kinds; the text of one that leaves the outcome open says so.
    """
    try:
        return await pool.request(
            entry.server,
            "tools/call",
            call_params(entry.tool, arguments, meta),
            timeout=timeout,
            on_progress=on_progress,
            repeatable=entry.read_only or entry.idempotent,
        )
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
