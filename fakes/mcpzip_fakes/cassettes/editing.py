"""The reply of an exchange, changed by hand: pretty JSON in an editor, compact in the cassette."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from mcpzip.cassettes.cassette import Cassette, Event
from mcpzip_fakes.cassettes.messages import decoded, read_message
from mcpzip_fakes.cassettes.overview import is_json, pretty

Editor = Callable[[str], str | None]
"""Shows a text to the user and returns the changed one; None if nothing was saved."""


class NotAReplyError(ValueError):
    """The changed text is no reply to the request. Its text says why."""


def reply_text(cassette: Cassette, number: int) -> str:
    """The reply of exchange ``number`` (from 1), indented if it is JSON. Raises ValueError, with what to do,
    if there is none.
    """
    data = _reply(cassette, number).data
    return f"{pretty(data)}\n" if is_json(data) else data.decode("utf-8", "backslashreplace")


def with_reply(cassette: Cassette, number: int, text: str) -> Cassette:
    """``cassette`` with ``text`` as the reply of exchange ``number``, on one line. Raises ValueError as
    `reply_text`, and NotAReplyError.
    """
    old = _reply(cassette, number)
    data = _compact(text, old.data)
    exchange = cassette.exchanges[number - 1]
    request, message = read_message(exchange.request), read_message(data)
    if request is not None and request.is_request and is_json(old.data):
        if message is None:
            raise NotAReplyError("it is no JSON object")
        former = read_message(old.data)
        _check_answers(data, request.id, former.id if former else request.id)
    events = tuple(replace(event, data=data) if event is old else event for event in exchange.events)
    exchanges = list(cassette.exchanges)
    exchanges[number - 1] = replace(exchange, events=events)
    return cassette.with_exchanges(exchanges)


def _reply(cassette: Cassette, number: int) -> Event:
    count = len(cassette.exchanges)
    if not 1 <= number <= count:
        raise ValueError(f"there is no exchange {number}; give a number from 1 to {count}")
    for event in cassette.exchanges[number - 1].events:
        if event.kind == "reply":
            return event
    raise ValueError(f"exchange {number} has no reply; choose one that has (mcpzip-fake show)")


def _compact(text: str, old: bytes) -> bytes:
    data = text.strip().encode()
    if not is_json(old):
        return text.encode()  # the body of an HTTP response that is no JSON
    try:
        decoded(data)
    except ValueError as error:
        raise NotAReplyError(f"it is no JSON: {error}") from error
    try:
        return msgspec.json.format(data, indent=-1)
    except msgspec.DecodeError:  # lone surrogates
        return b" ".join(line.strip() for line in data.splitlines())


def _check_answers(data: bytes, id: object, former: object) -> None:
    """Raises NotAReplyError unless it is a response to the request ``id``. former: the id that the server
    gave, which may be wrong and may stay so."""
    fields = decoded(data)
    assert isinstance(fields, dict)
    if fields.get("jsonrpc") != "2.0":
        raise NotAReplyError('"jsonrpc" is not "2.0"')
    given = fields.get("id", ...)
    if not any(type(given) is type(each) and given == each for each in (id, former)):
        raise NotAReplyError(f'"id" is not that of the request, {msgspec.json.encode(id).decode()}')
    if ("result" in fields) == ("error" in fields):
        raise NotAReplyError('it needs one of "result" and "error"')
    error = fields.get("error", {"code": 0, "message": ""})
    if not isinstance(error, dict) or type(error.get("code")) is not int or "message" not in error:
        raise NotAReplyError('"error" needs "code", a whole number, and "message"')
