"""A tool in the catalog.

``raw`` is the JSON text of the tool as the server sent it, and is never changed; the other fields are read
from it. A field of the wrong type counts as missing, so that a server's mistake in a description doesn't cost
it the tool. The text of a tool in a file stays there until it is asked for.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidToolError
from mcpzip.model.names import SEPARATOR

JsonObject = dict[str, object]

_UNREADABLE = (OSError, msgspec.DecodeError, UnicodeDecodeError)


class StoredTexts(msgspec.Struct, frozen=True):
    """The texts of tools in a file.

    read: the bytes of the file between two places; raises OSError. starts, ends: of each text, by number.
    """

    read: Callable[[int, int], bytes]
    starts: Sequence[int]
    ends: Sequence[int]

    def text(self, number: int) -> bytes:
        return self.read(self.starts[number], self.ends[number])


class Entry(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A tool in the catalog. Two are equal if their digests are, because the rest is read from the same.

    server, tool: the names of the server and of the tool there.
    read_only, idempotent: the hints of `ToolAnnotations`; False if missing. Only with one of them may a call
        be sent twice.
    digest: `tool_digest` of the server's name and of `raw`.
    """

    server: str
    tool: str
    read_only: bool
    idempotent: bool
    digest: bytes
    _source: bytes | StoredTexts  # of `raw`
    _number: int = 0  # in a `StoredTexts`
    _texts: tuple[str, str] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def raw(self) -> bytes:
        """The tool object as JSON text, as received. It is kept in memory once it was asked for. Raises
        OSError if it is in a file that can't be read.
        """
        source = self._source
        if not isinstance(source, bytes):
            source = source.text(self._number)
            msgspec.structs.force_setattr(self, "_source", source)
        return source

    def read(self) -> bytes:
        """`raw`, but not kept in memory: for whoever reads many tools. Raises OSError."""
        source = self._source
        return source if isinstance(source, bytes) else source.text(self._number)

    @property
    def title(self) -> str:
        """It is "" if missing."""
        return self._title_and_description()[0]

    @property
    def description(self) -> str:
        """It is "" if missing."""
        return self._title_and_description()[1]

    def _title_and_description(self) -> tuple[str, str]:
        texts = self._texts
        if texts is None:
            try:
                texts = _DESCRIBED.decode(self.read()).title_and_description
            except _UNREADABLE:
                return "", ""
            msgspec.structs.force_setattr(self, "_texts", texts)
        return texts

    @property
    def name(self) -> str:
        """The name by which clients call it: ``{server}__{tool}``."""
        return f"{self.server}{SEPARATOR}{self.tool}"  # as `join`, for every call asks for it

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
            read_only=hints.get("readOnlyHint") is True,
            idempotent=hints.get("idempotentHint") is True,
            digest=tool_digest(server, raw),
            _source=raw,
            _texts=_Described(
                tool.get("title"), tool.get("description"), tool.get("annotations")
            ).title_and_description,
        )

    def definition(self) -> JsonObject:
        """The decoded tool object. It is not cached, because it is large and rarely needed. It is empty if
        the file with its text was damaged or can't be read any more.
        """
        try:
            return _object(msgspec.json.decode(self.read()))
        except _UNREADABLE:
            return {}

    def input_schema(self) -> JsonObject:
        """The decoded ``inputSchema``; ``{}`` if it is missing or not a JSON object."""
        return _object(self.definition().get("inputSchema"))


def tool_digest(server: str, raw: bytes) -> bytes:
    """A digest (16 bytes) of the server's name and of the JSON text of its tool."""
    return blake2b(b"%b\0%b" % (server.encode(), raw), digest_size=16).digest()


class _Described(msgspec.Struct):
    """The members of a tool that describe it, of any type."""

    title: object = None
    description: object = None
    annotations: object = None

    @property
    def title_and_description(self) -> tuple[str, str]:
        title = _text(self.title) or _text(_object(self.annotations).get("title"))
        return title, _text(self.description)


_DESCRIBED = msgspec.json.Decoder(_Described)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
