"""Which server's results contained a URI: `resources/read` of that URI goes to that server.

The rules:

1. Only results count. A server's lists prove nothing, because a server can list the URIs of another.
2. A result is searched for URIs after it was sent to the client, and only if it can contain one.
3. The URIs are limited for each server separately, so that no server can displace those of another. A server
   with more URIs than the limit, or with a result that is too long to search, may have named any URI.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterator
from hashlib import blake2b

import msgspec

from mcpzip.model import limits
from mcpzip.model.limits import NAMED_BLOCKS, NAMED_IN, NAMED_URIS
from mcpzip.proxy.exchange import Client
from mcpzip.wire import unquote
from mcpzip.wire.json_iter import elements_of
from mcpzip.wire.json_object import may_hold_surrogates
from mcpzip.wire.surrogates import SurrogateMask

_MARKERS = {"tools/call": b'"resource', "prompts/get": b'"resource', "resources/read": b'"uri"'}
"""By method: the text that every result with a URI contains (part of ``"resource"``, ``"resource_link"``)."""

_SHORT = 16 * 1024
"""Bytes. A longer result is searched for the text above only after it was sent."""

_ABSENT = msgspec.Raw(b"null")


class _Link(msgspec.Struct):
    uri: msgspec.Raw = _ABSENT


class _Block(msgspec.Struct):
    """A block of content: a link, or an embedded resource."""

    uri: msgspec.Raw = _ABSENT
    resource: msgspec.Raw = _ABSENT


class _Message(msgspec.Struct):
    content: msgspec.Raw = _ABSENT


class _Result(msgspec.Struct):
    """The result of a tool (content), a prompt (messages) or a resource (contents)."""

    content: msgspec.Raw = _ABSENT
    contents: msgspec.Raw = _ABSENT
    messages: msgspec.Raw = _ABSENT


class UriSources:
    """The URIs in results, for each client. Requests without a session count as one client, or if people sign
    in, as one of each person.
    """

    def __init__(self, servers: int) -> None:
        """servers: the number of enabled servers. With only one, nothing is recorded."""
        self._several = servers > 1
        self._unrecorded: dict[Hashable, set[str]] = {}
        self._of: dict[Hashable, dict[str, _Named]] = {}
        self._queue: list[tuple[Client, str, bytes, bytes]] = []
        """The results that aren't searched yet: client, server, text to look for, result."""

    def reconfigure(self, servers: int, disconnected: Collection[str]) -> None:
        """servers: the number of enabled servers from now on. disconnected: those that were removed or
        changed, whose results so far mean nothing now.
        """
        self._search_queue()
        self._several = servers > 1
        for unrecorded in self._unrecorded.values():
            unrecorded.difference_update(disconnected)
        for named in self._of.values():
            for server in disconnected:
                named.pop(server, None)

    def record(self, client: Client, server: str, method: str, result: bytes) -> None:
        """Queues ``result`` (JSON text) of ``server``, which is about to be sent to ``client``."""
        marker = _MARKERS[method]
        if self._several and (len(result) > _SHORT or marker in result):
            if not self._queue:
                asyncio.get_running_loop().call_soon(self._search_queue)
            self._queue.append((client, server, marker, result))
        elif not self._several:
            # There may be several after an edit of the config.
            self._unrecorded.setdefault(client.owner, set()).add(server)
            self._forget_people()

    def sources_of(self, client: Client, uri: str) -> tuple[frozenset[str], frozenset[str]]:
        """The servers whose results contained ``uri``, and the servers whose results may have contained it
        (see rule 3). A URI of no result is taken to be of the server that was the only one before an edit of
        the config, because its results then were not recorded.
        """
        self._search_queue()
        named = self._of.get(client.owner, {})
        digest, unrecorded = _digest(uri), self._unrecorded.get(client.owner, set())
        return (
            frozenset(server for server, one in named.items() if digest in one.uris) or frozenset(unrecorded),
            frozenset(server for server, one in named.items() if not one.complete and digest not in one.uris)
            | unrecorded,
        )

    def remove_client(self, client: Client) -> None:
        """Forgets the URIs of ``client``."""
        self._search_queue()
        self._of.pop(client, None)
        self._unrecorded.pop(client, None)

    def _search_queue(self) -> None:
        queued, self._queue = self._queue, []
        for client, server, marker, result in queued:
            if len(result) > _SHORT and marker not in result:
                continue
            self._of.setdefault(client.owner, {}).setdefault(server, _Named()).add_from(result)
            self._forget_people()

    def _forget_people(self) -> None:
        """A client with a session leaves at some time, a person never does."""
        for known in (self._of, self._unrecorded):
            if len(known) > limits.PEOPLE_NAMED:
                people = [owner for owner in known if isinstance(owner, tuple)]
                for owner in people[: max(0, len(people) - limits.PEOPLE_NAMED)]:
                    del known[owner]


class _Named:
    """The URIs in one server's results. uris: digests, the latest last; complete: whether these are all."""

    __slots__ = ("complete", "uris")

    def __init__(self) -> None:
        self.uris: dict[bytes, None] = {}
        self.complete = True

    def add_from(self, result: bytes) -> None:
        if len(result) > NAMED_IN:
            self.complete = False
            return
        try:
            for count, uri in enumerate(_uris_in(result)):
                if count >= NAMED_URIS:
                    self.complete = False
                    break
                digest = _digest(uri)
                self.uris.pop(digest, None)
                self.uris[digest] = None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            self.complete = False  # the client may be able to read it
        while len(self.uris) > NAMED_URIS:
            del self.uris[next(iter(self.uris))]
            self.complete = False


def _uris_in(result: bytes) -> Iterator[str]:
    """The URIs of all resources and links in ``result``. Raises ValueError if it can't be read."""
    try:
        yield from _decoded_uris(result, bytes)
    except msgspec.DecodeError:  # maybe because of a lone surrogate, which msgspec refuses
        if not may_hold_surrogates(result) or (mask := SurrogateMask.over(result)) is None:
            raise
        yield from _decoded_uris(mask.text, mask.unmask)


def _decoded_uris(result: bytes, unmask: Callable[[bytes], bytes]) -> Iterator[str]:
    """The URIs in ``result``, in which surrogates may be masked. unmask: restores the text of a URI."""
    decoded = msgspec.json.decode(result, type=_Result)
    parts = [*_elements(decoded.content), *_elements(decoded.contents)]
    for message in _elements(decoded.messages):
        parts += _elements(msgspec.json.decode(message, type=_Message).content)
        if len(parts) > NAMED_BLOCKS:
            raise ValueError("too many blocks")
    for part in parts:
        for uri in _raw_uris(part):
            yield unquote(unmask(uri))


def _raw_uris(part: bytes) -> Iterator[bytes]:
    """The URIs (JSON texts) of a content block."""
    if not part.startswith(b"{"):
        return
    block = msgspec.json.decode(part, type=_Block)
    inside = bytes(block.resource)
    for raw in (block.uri, msgspec.json.decode(inside, type=_Link).uri if inside[:1] == b"{" else _ABSENT):
        if bytes(raw).startswith(b'"'):
            yield bytes(raw)


def _elements(raw: msgspec.Raw) -> list[bytes]:
    """The elements of a list; an object counts as a list of one. Raises TooManyError."""
    text = bytes(raw)
    if text.startswith(b"["):
        return elements_of(text, NAMED_BLOCKS)
    return [text] if text.startswith(b"{") else []


def _digest(uri: str) -> bytes:
    return blake2b(uri.encode("utf-8", "surrogatepass"), digest_size=16).digest()
