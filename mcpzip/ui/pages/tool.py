"""One tool: its definition, and its schema as a form that calls it."""

import json

from mcpzip import __version__
from mcpzip.model import sanitize
from mcpzip.model.entry import Entry, JsonObject
from mcpzip.model.errors import InvalidArgumentsError, McpzipError
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.metatools import EXECUTE
from mcpzip.proxy.proxy import Proxy
from mcpzip.ui.forms import WHOLE, arguments_of, fields_for
from mcpzip.ui.page import Answer, Visit
from mcpzip.ui.rendering import ShownText
from mcpzip.ui.results import ShownResult, shown_result
from mcpzip.wire import JsonRpcError, UpstreamRpcError, join_object, quote

_INFO = b'{"name":"mcpzip ui","version":"%b"}' % __version__.encode()
"""As whom the audit log knows who calls from here."""
_SCHEMA = 20_000
"""Characters of a schema that are shown."""
_HINTS = {
    "readOnlyHint": ("changes nothing", "may change something"),
    "destructiveHint": ("may destroy something", "destroys nothing"),
    "idempotentHint": ("running it twice does no more", "running it twice may do more"),
    "openWorldHint": ("reaches other systems", "stays in its own system"),
}
"""What a server says of a tool, if it says true or false."""


async def show(visit: Visit) -> Answer:
    """The page."""
    async with visit.sources.proxy() as proxy:
        entry = proxy.catalog.get(visit.name)
        return _unknown(visit) if entry is None else _page(visit, proxy, entry)


async def call(visit: Visit) -> Answer:
    """Calls the tool as `execute_tool` does for a client, and shows what the client would read."""
    async with visit.sources.proxy() as proxy:
        entry = proxy.catalog.get(visit.name)
        if entry is None:
            return _unknown(visit)
        try:
            arguments = arguments_of(fields_for(entry.input_schema(), {}), visit.fields)
        except InvalidArgumentsError as error:
            return _page(visit, proxy, entry, problem=str(error), status=400)
        try:
            result = shown_result(await _execute(proxy, entry, arguments))
        except UpstreamRpcError as error:
            said = f"{error.server} answered with JSON-RPC error {error.error.code}: {error.error.message}"
            return _page(visit, proxy, entry, problem=said)
        except (McpzipError, JsonRpcError) as error:
            return _page(visit, proxy, entry, problem=str(error))
        return _page(visit, proxy, entry, result=result)


async def _execute(proxy: Proxy, entry: Entry, arguments: bytes) -> bytes:
    client = Client(info=_INFO)
    try:
        asked = join_object({"name": quote(entry.name), "arguments": arguments})
        return await proxy.handlers[EXECUTE](asked, Exchange(client))
    finally:
        await proxy.remove_client(client)


def _page(
    visit: Visit,
    proxy: Proxy,
    entry: Entry,
    *,
    result: ShownResult | None = None,
    problem: str = "",
    status: int = 200,
) -> Answer:
    definition = entry.definition()
    given = visit.fields if visit.is_post else {}  # a link fills in nothing
    fields = fields_for(entry.input_schema(), given)
    return visit.page(
        "tool.html",
        status=status,
        entry=entry,
        fields=fields,
        json=ShownText(given.get(WHOLE, "")),
        hints=_hints(definition),
        schemas=[
            (title, _pretty(definition[key]))
            for key, title in (("inputSchema", "Input schema"), ("outputSchema", "Output schema"))
            if key in definition
        ],
        note=proxy.tool_caller.note(entry),
        result=result,
        problem=problem,
    )


def _hints(definition: JsonObject) -> list[str]:
    said = definition.get("annotations")
    if not isinstance(said, dict):
        return []
    return [_HINTS[key][not value] for key in _HINTS if isinstance(value := said.get(key), bool)]


def _pretty(value: object) -> ShownText:
    """JSON as it is shown. Sanitized here, because JSON has escapes of its own that keep its meaning."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    lines = [sanitize.json_text(line) for line in text[:_SCHEMA].split("\n")]
    return ShownText("\n".join(lines)[:_SCHEMA] + ("…" if len(text) > _SCHEMA else ""))


def _unknown(visit: Visit) -> Answer:
    return visit.refuse(
        404, "There is no such tool", f"No server that is configured has a tool {visit.name!r}."
    )
