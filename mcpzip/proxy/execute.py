"""Running a tool: from a name and arguments to the upstream's own answer.

The rules: the result's bytes are the upstream's; the call is sent at most once unless the tool says that
twice does no harm (``readOnlyHint`` or ``idempotentHint``, spec: server/tools `ToolAnnotations`); when it may
have run without an answer, that is said.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from mcpzip.model.entry import Entry
from mcpzip.model.errors import UpstreamError, UpstreamLostError, UpstreamTimeoutError
from mcpzip.proxy.call import UpstreamRequest


def request(entry: Entry, fields: dict[str, bytes], timeout: float) -> UpstreamRequest:
    """The call of a tool. fields: the members of the params, as JSON texts. timeout: seconds."""
    repeatable = entry.read_only or entry.idempotent
    return UpstreamRequest(
        entry.server, "tools/call", fields, timeout, repeatable=repeatable, definition=entry.raw
    )


@contextmanager
def outcome_told(entry: Entry) -> Iterator[None]:
    """The text of an UpstreamError that leaves the outcome of a call of ``entry`` open says so."""
    try:
        yield
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
