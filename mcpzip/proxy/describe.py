"""`describe_tool`: everything the upstream said of one tool."""

from mcpzip.catalog import ServerRecord
from mcpzip.model.durations import age
from mcpzip.model.entry import Entry
from mcpzip.proxy.tool_result import text_result
from mcpzip.wire import quote, with_members


def described(entry: Entry, record: ServerRecord, now: float, note: str = "") -> bytes:
    """The tool's definition as the upstream sent it, under the name to call it by, and how fresh it is.
    note: a sentence about its calls, or "".
    """
    definition = with_members(entry.raw, {"name": quote(entry.name)}).decode("utf-8", "replace")
    return text_result("\n".join(filter(None, (definition, note, freshness(record, now)))))


def freshness(record: ServerRecord, now: float) -> str:
    """One sentence: when the server listed its tools, and why that is old news if it is."""
    listed = f"listed {age(now - record.fetched_at)} ago" if record.fetched_at else "never listed here"
    if record.error:
        return f"Server {record.name}, {listed}; it could not be asked again: {record.error}."
    return f"Server {record.name}, {listed}."
