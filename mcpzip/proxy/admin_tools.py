"""mcpzip's own tools, which are not shown but found by search."""

from mcpzip.model.entry import Entry
from mcpzip.proxy.metatools import REFRESH, STATUS

ADMIN_TOOLS = tuple(
    Entry.parse("mcpzip", raw)
    for raw in (
        b'{"name":"%b","description":"Status of the proxy: its servers, their tools, what is wrong",'
        b'"annotations":{"readOnlyHint":true}}' % STATUS.encode(),
        b'{"name":"%b","description":"Refresh the proxy: list the tools of all servers again",'
        b'"annotations":{"idempotentHint":true}}' % REFRESH.encode(),
    )
)
"""mcpzip's own tools. `tools/list` doesn't show them: search finds them. `execute_tool` and `tools/call` run
them under their names without a server."""
