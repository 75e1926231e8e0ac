"""Results of our own making, as JSON text (spec: server/tools `CallToolResult`)."""

import json
from collections.abc import Mapping

META_PREFIX = "mcpzip/"


def text_result(text: str, *, meta: Mapping[str, object] | None = None, is_error: bool = False) -> bytes:
    """A `CallToolResult` of one text. ``meta`` goes under our own `_meta` keys (``search`` becomes
    ``mcpzip/search``).
    """
    result: dict[str, object] = {"content": [{"type": "text", "text": text}]}
    if is_error:
        result["isError"] = True
    if meta:
        result["_meta"] = {META_PREFIX + key: value for key, value in meta.items()}
    # ASCII escapes only where UTF-8 has no bytes: a lone surrogate from a client's own escape.
    try:
        return json.dumps(result, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(result, separators=(",", ":")).encode()


def error_result(text: str) -> bytes:
    """A failed call the model can read and act on."""
    return text_result(text, is_error=True)
