"""A tool in the catalog.

``raw`` is the JSON text of the tool as the server sent it, and is never changed; the other fields are read
from it. A field of the wrong type counts as missing, so that a server's mistake in a description doesn't cost
it the tool.
"""

from hashlib import blake2b
from typing import cast

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.names import join

JsonObject = dict[str, object]


class Entry(msgspec.Struct, frozen=True, eq=False):
    """A tool in the catalog. Two are equal if `server` and `raw` are, because the rest is read from them.

    server, tool: the names of the server and of the tool there.
    raw: the tool object as JSON text, as received.
    title, description: "" if missing.
    read_only, idempotent: the hints of `ToolAnnotations`; False if missing. Only with one of them may a call
        be sent twice.
    """

    server: str
    tool: str
    raw: bytes
    title: str
    description: str
    read_only: bool
    idempotent: bool
    _digest: bytes = b""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry):
            return NotImplemented
        return self is other or (self.raw == other.raw and self.server == other.server)

    def __hash__(self) -> int:
        return hash((self.server, self.raw))

    @property
    def digest(self) -> bytes:
        """A digest (16 bytes) of the server's name and of `raw`, computed when it is first asked for."""
        if not self._digest:
            digest = blake2b(b"%b\0%b" % (self.server.encode(), self.raw), digest_size=16).digest()
            msgspec.structs.force_setattr(self, "_digest", digest)
        return self._digest

    @property
    def name(self) -> str:
        """The name by which clients call it: ``{server}__{tool}``."""
        return join(self.server, self.tool)

    @classmethod
    def parse(cls, server: str, raw: bytes) -> "Entry":
        """The entry for one item of a `tools/list` result.

        Raises InvalidToolError unless ``raw`` is a JSON object of at most `limits.MEMBERS` members whose
        ``name`` is a string of 1 to `limits.NAME` characters.
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
        """The decoded tool object. It is not cached, because it is large and rarely needed."""
        return cast(JsonObject, msgspec.json.decode(self.raw))

    def input_schema(self) -> JsonObject:
        """The decoded ``inputSchema``; ``{}`` if it is missing or not a JSON object."""
        return _object(self.definition().get("inputSchema"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
