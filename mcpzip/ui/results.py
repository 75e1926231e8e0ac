"""The result of a tool as a page shows it (pure)."""

import msgspec

from mcpzip.model import sanitize
from mcpzip.ui.rendering import ShownText

LONGEST = 20_000
"""Characters of a result that are shown, of all its parts together."""
_MOST = 100
"""Parts that are shown."""


class Part(msgspec.Struct, frozen=True):
    """A part of a result. label: what it is. text: what is shown of it, sanitized; "" for nothing."""

    label: str
    text: ShownText


class _Resource(msgspec.Struct):
    uri: str = ""
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")


class _Content(msgspec.Struct):
    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")
    resource: _Resource | None = None
    uri: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None

    def part(self) -> tuple[str, str]:
        """What it is, and all of it that a model can read."""
        inner = self.resource or _Resource()
        mime_type, data = self.mime_type or inner.mime_type, self.data or inner.blob
        label = self.type if not mime_type else f"{self.type}, {mime_type}"
        if data is not None:
            label = f"{label}, {len(data):,} base64 characters, not shown"
        said = (self.uri or inner.uri, self.name, self.title, self.description, self.text, inner.text)
        return label, "\n".join(filter(None, said))


class _Result(msgspec.Struct):
    content: list[_Content] = []
    is_error: bool = msgspec.field(default=False, name="isError")
    structured: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="structuredContent")


class ShownResult(msgspec.Struct, frozen=True):
    """A result. failed: whether the tool reports an error."""

    parts: list[Part]
    failed: bool
    size: int


def shown_result(result: bytes) -> ShownResult:
    """What is shown of ``result`` (a `CallToolResult`, JSON text); a malformed one is shown as its JSON."""
    try:
        found = msgspec.json.decode(result, type=_Result)
    except (msgspec.DecodeError, RecursionError):
        return ShownResult(
            [Part("JSON", _cut(result.decode("utf-8", "replace"), LONGEST))], False, len(result)
        )
    left, parts = LONGEST, []
    for content in found.content:
        label, said = content.part()
        text = _cut(said, left)
        left = max(0, left - len(text))
        parts.append(Part(sanitize.one_line(label, 200), text))
        if len(parts) == _MOST:
            parts.append(Part(f"{len(found.content) - _MOST:,} more parts", ShownText()))
            break
    structured = bytes(found.structured).decode("utf-8", "replace")
    if structured not in ("", "null"):
        parts.append(Part("structured content, which some clients give the model", _cut(structured, left)))
    return ShownResult(parts, found.is_error, len(result))


def _cut(text: str, most: int) -> ShownText:
    """``text`` for people, ``most`` characters of it as they are shown."""
    shown = sanitize.lines(text, most) if most > 0 else ""
    left = "" if most > 0 or not text else f"… ({len(text):,} more characters)"
    return ShownText((shown if len(shown) <= most else f"{shown[:most]}…") + left)
