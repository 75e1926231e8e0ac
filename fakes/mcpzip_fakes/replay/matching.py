"""Which recorded exchanges answer a request (pure).

The rule: a request is the recorded one if it has the same method and the same params, as JSON values; their
``_meta``, the paths of `Match.ignore` and masked secrets don't count. Of `initialize` and `server/discover`
only the protocol version counts, and only to prefer an exchange.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mcpzip.cassettes.cassette import Exchange, Match
from mcpzip.cassettes.masks import START
from mcpzip.wire import PROTOCOL_VERSION_KEY
from mcpzip.wire.canonical_json import Object, decoded, written
from mcpzip_fakes.replay.differences import Difference, differences, fits
from mcpzip_fakes.replay.messages import Message, read

_GREETINGS = ("initialize", "server/discover")
_NEAR = 200
"""Recorded requests that are compared to find the nearest one."""
_OF_TOOL = re.compile(r"(?P<tool>.+):(?P<path>(?:arguments|_meta|\*)(?:\..+)?)", re.DOTALL)
_MASK_START = START.encode()


class Recorded(Struct, frozen=True, eq=False, kw_only=True):
    """An exchange and the message of the client that began it. number: from 1, in the cassette."""

    number: int
    exchange: Exchange
    message: Message


def recorded(exchanges: Sequence[Exchange]) -> list[Recorded]:
    """The exchanges of a cassette, with their messages."""
    return [
        Recorded(number=number, exchange=exchange, message=read(exchange.request))
        for number, exchange in enumerate(exchanges, 1)
    ]


class Matcher:
    """The recorded messages of clients, to be found by new ones."""

    def __init__(self, exchanges: Iterable[Recorded], match: Match) -> None:
        self._ignored = [_ignored(path) for path in match.ignore]
        self._by_key: dict[tuple[str, str, bytes], list[Recorded]] = {}
        self._by_method: dict[tuple[str, str], list[Recorded]] = {}
        self._masked: list[tuple[Recorded, object]] = []
        for each in exchanges:
            message = each.message
            if message.kind == "response" or not each.exchange.request:
                continue
            self._by_key.setdefault(self._key(message), []).append(each)
            self._by_method.setdefault((message.kind, message.method), []).append(each)
            if _MASK_START in message.params:
                self._masked.append((each, self.comparable(message)))

    def found(self, message: Message) -> list[Recorded]:
        """The exchanges whose request is ``message``, as they were recorded; those that are exactly it, or
        else those that may be it, because of their masked secrets."""
        if exact := self._by_key.get(self._key(message)):
            return _preferred(exact, message)
        present = self.comparable(message) if self._masked else None
        return [
            each
            for each, value in self._masked
            if (each.message.kind, each.message.method) == (message.kind, message.method)
            and fits(value, present)
        ]

    def of_method(self, message: Message) -> list[Recorded]:
        """The exchanges of the same method."""
        return self._by_method.get((message.kind, message.method), [])

    def nearest(self, message: Message) -> tuple[Recorded, list[Difference]] | None:
        """The exchange whose request differs least from ``message``, and where; the same tool, prompt or
        resource is nearer than any other. None if there is none of the method."""
        present, name = self.comparable(message), _name(message)
        candidates = self.of_method(message)
        same = [each for each in candidates if _name(each.message) == name]
        compared = [
            (each, differences(self.comparable(each.message), present, "params"))
            for each in (same or candidates)[:_NEAR]
        ]
        return min(compared, key=lambda pair: len(pair[1]), default=None)

    def comparable(self, message: Message) -> object:
        """What counts of the params of ``message``, as a value of `canonical_json.decoded`."""
        value = decoded(message.params or b"{}")
        if not isinstance(value, Object):
            return value
        kept: object = Object(member for member in value if member[0] != "_meta")
        if not self._ignored:
            return kept
        tool = _name(message) if message.method == "tools/call" else ""
        for of_tool, path in self._ignored:
            if of_tool in (None, tool):
                kept = _without(kept, path)
        return kept

    def _key(self, message: Message) -> tuple[str, str, bytes]:
        if message.kind == "other":
            return message.kind, "", message.raw
        if message.method in _GREETINGS:
            return message.kind, message.method, b""
        return message.kind, message.method, written(self.comparable(message))


def _ignored(path: str) -> tuple[str | None, tuple[str, ...]]:
    """The tool's name, None for all, and the keys of a path of `Match.ignore`."""
    if found := _OF_TOOL.fullmatch(path):
        return found["tool"], tuple(found["path"].split("."))
    return None, tuple(path.split("."))


def _without(value: object, path: tuple[str, ...]) -> object:
    """``value`` without its members or elements at ``path``."""
    if isinstance(value, Object):
        return Object(
            (key, _without(inner, path[1:]) if len(path) > 1 and path[0] in ("*", key) else inner)
            for key, inner in value
            if len(path) > 1 or path[0] not in ("*", key)
        )
    if isinstance(value, list):
        return [
            _without(inner, path[1:]) if len(path) > 1 and path[0] in ("*", str(number)) else inner
            for number, inner in enumerate(value)
            if len(path) > 1 or path[0] not in ("*", str(number))
        ]
    return value


def _name(message: Message) -> str:
    """The tool, prompt or resource that a request names; "" without one."""
    value = decoded(message.params or b"{}")
    found = dict(value) if isinstance(value, Object) else {}
    name = found.get("name", found.get("uri"))
    return name if isinstance(name, str) else ""


def version(message: Message) -> str:
    """The protocol version that a request states; "" if it states none."""
    value = decoded(message.params or b"{}")
    found = dict(value) if isinstance(value, Object) else {}
    if message.method == "initialize":
        stated = found.get("protocolVersion")
    else:
        meta = found.get("_meta")
        stated = dict(meta).get(PROTOCOL_VERSION_KEY) if isinstance(meta, Object) else None
    return stated if isinstance(stated, str) else ""


def _preferred(found: list[Recorded], message: Message) -> list[Recorded]:
    """Of greetings those with the same protocol version, if there are any."""
    if message.method not in _GREETINGS or len(found) == 1:
        return found
    asked = version(message)
    return [each for each in found if version(each.message) == asked] or found
