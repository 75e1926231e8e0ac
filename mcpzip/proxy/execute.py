"""Running a tool: from a name and arguments to the upstream's own answer.

The rules: the result's bytes are the upstream's; the call is sent at most once unless the tool says that
twice does no harm (``readOnlyHint`` or ``idempotentHint``, spec: server/tools `ToolAnnotations`); when it may
have run without an answer, that is said.
"""

from mcpzip.model.entry import Entry
from mcpzip.model.errors import UpstreamError
from mcpzip.proxy.call import UpstreamRequest


def request(entry: Entry, fields: dict[str, bytes], timeout: float) -> UpstreamRequest:
    """The call of a tool. fields: the members of the params, as JSON texts. timeout: seconds."""
    repeatable = entry.read_only or entry.idempotent
    return UpstreamRequest(
        entry.server, "tools/call", fields, timeout, repeatable=repeatable, definition=entry.raw
    )


def unknown_outcome(entry: Entry, reason: str) -> UpstreamError:
    """The error for a call of ``entry`` that failed for ``reason`` after it may have run."""
    if entry.read_only:
        return UpstreamError(entry.server, reason, "It only reads: calling it again is safe.")
    return UpstreamError(entry.server, reason, f"{entry.tool} may have run: check before calling it again.")
