"""Whose result named a URI: who is asked when the client reads it by that.

The rules:

1. What a server lists is no evidence: it may list what it likes. That a result of its own named a URI is.
2. A result is looked through after it was handed on, and only where it may name a URI.
3. What is kept is bounded for each server by itself, so that none can push out what another named. A server
   that named more, or whose result was too long to look through, may have named anything.
"""

import asyncio
from collections.abc import Callable, Iterator
from hashlib import blake2b

import msgspec

from mcpzip.model.limits import NAMED_BLOCKS, NAMED_IN, NAMED_URIS
from mcpzip.proxy.exchange import Client
from mcpzip.wire import unquote
from mcpzip.wire.json_iter import elements_of
from mcpzip.wire.json_object import may_hold_surrogates
from mcpzip.wire.surrogates import SurrogateMask

_NEEDLES = {"tools/call": b'"resource', "prompts/get": b'"resource', "resources/read": b'"uri"'}
"""What a result has in it that names a URI, by method: ``"resource"`` or ``"resource_link"``."""

_SHORT = 16 * 1024
"""Bytes of a result that is searched at once; a longer one is when it was handed on."""

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
    """content: of a tool's; messages: of a prompt's; contents: of a resource's."""

    content: msgspec.Raw = _ABSENT
    contents: msgspec.Raw = _ABSENT
    messages: msgspec.Raw = _ABSENT


class UriSources:
    """What results named, by client. Requests that can't be told apart are one client."""

    def __init__(self, servers: int) -> None:
        """servers: how many are in use; with one there is nothing to be told apart."""
        self._several = servers > 1
        self._of: dict[Client | None, dict[str, _Named]] = {}
        self._queue: list[tuple[Client, str, bytes, bytes]] = []
        """What is to be looked through yet."""

    def record(self, client: Client, server: str, method: str, result: bytes) -> None:
        """``client`` is about to be sent this ``result`` of ``server``, as it is."""
        needle = _NEEDLES[method]
        if self._several and (len(result) > _SHORT or needle in result):
            if not self._queue:
                asyncio.get_running_loop().call_soon(self._look_through)
            self._queue.append((client, server, needle, result))

    def sources_of(self, client: Client, uri: str) -> tuple[frozenset[str], frozenset[str]]:
        """The servers whose results named ``uri``, and those of which nobody knows any more."""
        self._look_through()
        named = self._of.get(_key(client), {})
        digest = _digest(uri)
        return (
            frozenset(server for server, one in named.items() if digest in one.uris),
            frozenset(server for server, one in named.items() if not one.whole and digest not in one.uris),
        )

    def remove_client(self, client: Client) -> None:
        """``client`` is gone."""
        self._look_through()
        self._of.pop(client, None)

    def _look_through(self) -> None:
        _queue, self._queue = self._queue, []
        for client, server, needle, result in _queue:
            if len(result) > _SHORT and needle not in result:
                continue
            self._of.setdefault(_key(client), {}).setdefault(server, _Named()).note(result)


class _Named:
    """uris: what a server named, the latest last. whole: whether that is all."""

    __slots__ = ("uris", "whole")

    def __init__(self) -> None:
        self.uris: dict[bytes, None] = {}
        self.whole = True

    def note(self, result: bytes) -> None:
        if len(result) > NAMED_IN:
            self.whole = False
            return
        try:
            for count, uri in enumerate(_named_in(result)):
                if count >= NAMED_URIS:
                    self.whole = False
                    break
                digest = _digest(uri)
                self.uris.pop(digest, None)
                self.uris[digest] = None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
            self.whole = False  # the client may read what we can't
        while len(self.uris) > NAMED_URIS:
            del self.uris[next(iter(self.uris))]
            self.whole = False


def _named_in(result: bytes) -> Iterator[str]:
    """Every URI that ``result`` names as a resource. Raises ValueError when it can't be looked through."""
    try:
        yield from _read_in(result, bytes)
    except msgspec.DecodeError:  # at a half of a surrogate pair msgspec takes offence
        if not may_hold_surrogates(result) or (mask := SurrogateMask.over(result)) is None:
            raise
        yield from _read_in(mask.text, mask.unmask)


def _read_in(result: bytes, lifted: Callable[[bytes], bytes]) -> Iterator[str]:
    """The same. lifted: gives the text of a URI in ``result`` as the server spelt it."""
    said = msgspec.json.decode(result, type=_Result)
    parts = [*_elements(said.content), *_elements(said.contents)]
    for message in _elements(said.messages):
        parts += _elements(msgspec.json.decode(message, type=_Message).content)
        if len(parts) > NAMED_BLOCKS:
            raise ValueError("too many blocks")
    for part in parts:
        for uri in _of_block(part):
            yield unquote(lifted(uri))


def _of_block(part: bytes) -> Iterator[bytes]:
    if not part.startswith(b"{"):
        return
    block = msgspec.json.decode(part, type=_Block)
    inside = bytes(block.resource)
    for raw in (block.uri, msgspec.json.decode(inside, type=_Link).uri if inside[:1] == b"{" else _ABSENT):
        if bytes(raw).startswith(b'"'):
            yield bytes(raw)


def _elements(raw: msgspec.Raw) -> list[bytes]:
    """Of a list; an object stands for a list of it. Raises TooManyError."""
    text = bytes(raw)
    if text.startswith(b"["):
        return elements_of(text, NAMED_BLOCKS)
    return [text] if text.startswith(b"{") else []


def _digest(uri: str) -> bytes:
    return blake2b(uri.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _key(client: Client) -> Client | None:
    return client if client.has_session else None
