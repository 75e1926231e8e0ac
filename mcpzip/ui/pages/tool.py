"""One tool: its definition, and its schema as a form that calls it."""

import json

from mcpzip.model import sanitize
from mcpzip.model.entry import Entry, JsonObject
from mcpzip.model.errors import InvalidArgumentsError, McpzipError
from mcpzip.ui.forms import WHOLE, arguments_of, fields_for
from mcpzip.ui.kept import KeptPart, handle_of, is_handle, kept_part
from mcpzip.ui.kept import arguments_of as part_arguments
from mcpzip.ui.page import Answer, PersonVisit
from mcpzip.ui.rendering import ShownText
from mcpzip.ui.results import ShownResult, shown_result
from mcpzip.ui.seen import Seen
from mcpzip.wire import JsonRpcError, UpstreamRpcError

_LONGEST_KEPT = 999_999_999
"""Characters up to which a kept result is read."""
_SCHEMA = 20_000
"""Characters of a schema that are shown."""
_HINTS = {
    "readOnlyHint": ("changes nothing", "may change something"),
    "destructiveHint": ("may destroy something", "destroys nothing"),
    "idempotentHint": ("running it twice does no more", "running it twice may do more"),
    "openWorldHint": ("reaches other systems", "stays in its own system"),
}
"""What a server says of a tool, if it says true or false."""


async def show(visit: PersonVisit) -> Answer:
    """The page, with a part of a kept result if the query names one."""
    async with visit.sources.seen() as seen:
        entry = seen.catalog.get(visit.name)
        if entry is None:
            return _unknown(visit)
        handle = visit.fields.get("kept", "")
        if not is_handle(handle) or not _keeps(seen):
            return _page(visit, seen, entry)
        try:
            asked = part_arguments(visit.number("from", most=_LONGEST_KEPT))
            part = kept_part(handle, await visit.sources.kept(handle, asked))
        except (McpzipError, JsonRpcError) as error:
            part = str(error)
        if isinstance(part, str):
            return _page(visit, seen, entry, problem=part)
        return _page(visit, seen, entry, part=part)


async def call(visit: PersonVisit) -> Answer:
    """Calls the tool as `execute_tool` does for a client, and shows what the client would read."""
    async with visit.sources.seen() as seen:
        entry = seen.catalog.get(visit.name)
        if entry is None:
            return _unknown(visit)
        try:
            arguments = arguments_of(fields_for(entry.input_schema(), {}), visit.fields)
        except InvalidArgumentsError as error:
            return _page(visit, seen, entry, problem=str(error), status=400)
        try:
            said = await visit.sources.call(seen, entry, arguments)
        except UpstreamRpcError as error:
            problem = f"{error.server} answered with JSON-RPC error {error.error.code}: {error.error.message}"
            return _page(visit, seen, entry, problem=problem)
        except (McpzipError, JsonRpcError) as error:
            return _page(visit, seen, entry, problem=str(error))
        return _page(
            visit, seen, entry, result=shown_result(said), kept=handle_of(said) if _keeps(seen) else ""
        )


def _keeps(seen: Seen) -> bool:
    """Whether results are kept. In ``transparent`` none is, and `execute_tool` would be a tool of the server,
    which no link may call.
    """
    return seen.proxy.exposure.transparent_server is None


def _page(
    visit: PersonVisit,
    seen: Seen,
    entry: Entry,
    *,
    result: ShownResult | None = None,
    kept: str = "",
    part: KeptPart | None = None,
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
        note=seen.note(entry),
        result=result,
        kept=kept,
        part=part,
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


def _unknown(visit: PersonVisit) -> Answer:
    return visit.refuse(
        404, "There is no such tool", f"No server that is configured has a tool {visit.name!r}."
    )
