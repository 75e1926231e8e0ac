"""One tool of one upstream, exactly as it was received.

The rule: ``raw`` is the JSON text of the tool as the upstream sent it and is never rewritten; everything else
here is read from it. A field of the wrong type is treated as absent: a sloppy server loses a description,
never its tool.
"""

from dataclasses import dataclass
from typing import cast

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.names import join

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool in the catalog.

    server, tool: who has it, and the upstream's own name for it, verbatim.
    raw: the tool object as JSON text, as received (unknown fields, key order and number spelling kept).
    title, description: for people and for search; empty when the upstream gave none.
    read_only, idempotent: the upstream's hints (`ToolAnnotations`); False when absent. Only these two allow a
        call to be sent twice.
    """

    server: str
    tool: str
    raw: bytes
    title: str
    description: str
    read_only: bool
    idempotent: bool

    @property
    def name(self) -> str:
        """The name a client calls it by: ``{server}__{tool}``."""
        return join(self.server, self.tool)

    @classmethod
    def parse(cls, server: str, raw: bytes) -> "Entry":
        """The entry for one element of a `tools/list` result.

        Raises InvalidToolError when ``raw`` is not a JSON object with a string ``name`` of `limits.NAME`
        characters at most and `limits.MEMBERS` members.
        """
        try:
            tool = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidToolError(f"a tool of {server!r} is not JSON: {error}") from error
        if not isinstance(tool, dict):
            raise InvalidToolError(f"a tool of {server!r} is not a JSON object")
        if len(tool) > limits.MEMBERS:
            raise InvalidToolError(f"a tool of {server!r} has more than {limits.MEMBERS:,} members")
        name = tool.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidToolError(f"a tool of {server!r} has no name")
        if len(name) > limits.NAME:
            raise InvalidToolError(
                f"a tool of {server!r} has a name of {len(name):,} characters ({limits.NAME:,} at most), "
                f"{name[:40]!r}…"
            )
        hints = _object(tool.get("annotations"))
        return cls(
            server=server,
            tool=name,
            raw=raw,
            title=_text(tool.get("title")) or _text(hints.get("title")),
            description=_text(tool.get("description")),
            read_only=hints.get("readOnlyHint") is True,
            idempotent=hints.get("idempotentHint") is True,
        )

    def definition(self) -> JsonObject:
        """The tool object, decoded anew on every call (it is big and seldom needed)."""
        return cast(JsonObject, msgspec.json.decode(self.raw))

    def input_schema(self) -> JsonObject:
        """``inputSchema`` decoded; ``{}`` when the upstream gave none or not an object."""
        return _object(self.definition().get("inputSchema"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
