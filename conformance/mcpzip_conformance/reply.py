"""An answer, and its parts that checks read."""

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request: ``result`` or ``error``, as JSON text; the other is None."""

    result: bytes | None = None
    error: bytes | None = None

    @property
    def text(self) -> str:
        """The text blocks of a tool's result, or the message of an error, a line each."""
        if self.result is None:
            return str(_decoded(self.error or b"{}").get("message", ""))
        content = _decoded(self.result).get("content")
        blocks = content if isinstance(content, list) else []
        return "\n".join(
            block["text"]
            for block in blocks
            if isinstance(block, dict) and isinstance(block.get("text"), str)
        )

    @property
    def json(self) -> object:
        """The text, decoded; None if it is not JSON."""
        try:
            return msgspec.json.decode(self.text)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None

    @property
    def fields(self) -> dict[str, object]:
        """The result, decoded; {} for an error or a result that isn't an object."""
        return {} if self.result is None else _decoded(self.result)

    @property
    def code(self) -> object:
        """The error's code; None for a result."""
        return None if self.error is None else _decoded(self.error).get("code")

    @property
    def brief(self) -> str:
        """The reply in a few words, for a sentence about it."""
        if self.result is None:
            return f"error {self.code!r}: {self.text}"
        return f"the result {self.result[:200].decode('utf-8', 'replace')}"

    @property
    def failed(self) -> bool:
        """Whether the call failed: an error, or a result with ``isError``."""
        return self.error is not None or self.fields.get("isError") is True


def _decoded(raw: bytes) -> dict[str, object]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}
