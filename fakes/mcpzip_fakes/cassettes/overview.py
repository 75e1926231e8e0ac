"""A cassette for whoever reads it: an overview, or one exchange in full; as text and as JSON.

The rule: texts of a recorded server or client are untrusted. Everything shown is sanitized, and bounded
unless the user asks for all of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from mcpzip.cassettes.cassette import Cassette, Event
from mcpzip.model import sanitize
from mcpzip.model.limits import SHOWN_TEXT
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.cassettes.messages import INPUT_REQUIRED, Heard, decoded, heard, server_info_of
from mcpzip_fakes.request import as_object

ROWS = 500
"""Exchanges of an overview; of more the number is told."""
LINES = 200
"""Lines of one message; of more the number is told."""
_TITLE, _OUTCOME, _NAMES = 48, 80, 400
_LISTS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
"""What a server can list, and what names an item."""
_COUNTED = {"send": "sent by the server", "receive": "answered by the client", "stderr": "on stderr"}


@dataclass
class Offers:
    """What a server said of itself in a cassette. info: name and version. lists: names of items, by list."""

    info: JsonObject
    protocol: str
    capabilities: list[str]
    lists: dict[str, list[str]]


def offers(exchanges: tuple[Heard, ...]) -> Offers:
    """What the server offers, by all its sessions together."""
    found = Offers({}, "", [], {})
    for each in exchanges:
        result = as_object(each.reply.result) if each.reply else {}
        method = each.request.method if each.request else ""
        if method in ("initialize", "server/discover"):
            versions = result.get("supportedVersions")
            last = versions[-1] if isinstance(versions, list) and versions else ""
            found.protocol = str(result.get("protocolVersion") or last or found.protocol)
            found.capabilities = sorted(as_object(result.get("capabilities"))) or found.capabilities
        found.info = server_info_of(result) or found.info
        if not method.endswith("/list"):
            continue
        for kind, key in _LISTS.items():
            items = result.get(kind)
            known = found.lists.setdefault(kind, []) if isinstance(items, list) else []
            seen = set(known)
            for item in items if isinstance(items, list) else ():
                name = str(as_object(item).get(key, ""))
                if name not in seen:
                    known.append(name)
                    seen.add(name)
    return found


# Text


def overview(cassette: Cassette, *, full: bool = False) -> Iterator[str]:
    """Its lines: what it is, what the server offers, and each exchange. full: all exchanges."""
    exchanges = tuple(heard(cassette.exchanges))
    found = offers(exchanges)
    said = " ".join(str(found.info[key]) for key in ("name", "version") if key in found.info)
    rows = {
        "cassette": cassette.name,
        "recorded": f"over {cassette.transport}, from {cassette.url or ' '.join(cassette.command) or '?'}"
        + (f", by {cassette.recorder}" if cassette.recorder else ""),
        "server": ", ".join(filter(None, (said, found.protocol and f"protocol {found.protocol}"))),
        "capabilities": ", ".join(found.capabilities),
        **{kind: f"{len(names)}: {', '.join(names)}" for kind, names in found.lists.items() if names},
        "sessions": ", ".join(f"{each.number} {each.started}".rstrip() for each in cassette.sessions),
        "match": _settings({"ignore": cassette.match.ignore, "repeat": cassette.match.repeat or "no"}),
        "check": _settings(as_object(msgspec.to_builtins(cassette.check))),
        "masked": ", ".join(f"{each.mask} in {each.where} ({each.why})" for each in cassette.masked),
    }
    for key, value in rows.items():
        if value:
            yield f"{key:12}  {sanitize.one_line(value, SHOWN_TEXT if full else _NAMES)}"
    yield ""
    yield f"{'N':>5}  {'session':>7}  {'at':>9}  {'took':>8}  {'message':{_TITLE}}  outcome"
    most = len(exchanges) if full else ROWS
    for each in exchanges[:most]:
        took = f"{each.took:.3f} s" if each.took is not None else ""
        title = sanitize.one_line(each.title, _TITLE)
        line = f"{each.number:>5}  {each.exchange.session:>7}  {each.exchange.at:>7.3f} s  {took:>8}"
        yield f"{line}  {title:{_TITLE}}  {sanitize.one_line(outcome(each), _OUTCOME)}".rstrip()
    if len(exchanges) > most:
        yield f"… and {len(exchanges) - most:,} more: --full shows all"


def _settings(values: Mapping[str, object]) -> str:
    """The settings that aren't empty. ``repeat`` is one unless it is true."""
    said = []
    for key, value in values.items():
        if isinstance(value, list | tuple):
            said += [f"{key} {', '.join(map(str, value))}"] if value else []
        elif value is not True or key != "repeat":
            said.append(f"{key} {'yes' if value is True else value}")
    return "; ".join(said)


def outcome(each: Heard) -> str:
    """What came of an exchange, in a few words: the answer, and how many messages came beside it."""
    said = [_answer(each)]
    for kind, what in _COUNTED.items():
        if count := sum(event.kind == kind for event in each.exchange.events):
            said.append(f"{count} {what}")
    said += [
        f"the server ended{'' if event.code is None else f' with {event.code}'}"
        for event in each.exchange.events
        if event.kind == "end"
    ]
    return "; ".join(filter(None, said))


def _answer(each: Heard) -> str:
    response = each.exchange.response
    status = f"HTTP {response.status}" if response and response.status >= 300 else ""
    if each.took is None:
        wanted = each.request is not None and each.request.is_request
        return status or ("no answer" if wanted else "")
    if each.reply is None:
        return status or "an answer that is no message"
    if each.reply.error is not None:
        return f"error {each.reply.error.get('code')}: {each.reply.error.get('message')}"
    return _result(as_object(each.reply.result))


def _result(result: JsonObject) -> str:
    for kind in _LISTS:
        if isinstance(items := result.get(kind), list):
            return f"{len(items)} {kind}" + (", and a further page" if result.get("nextCursor") else "")
    if result.get("resultType") == INPUT_REQUIRED:
        return f"asks for {', '.join(as_object(result.get('inputRequests')))}"
    if isinstance(versions := result.get("supportedVersions"), list):
        return f"protocol {', '.join(map(str, versions))}"
    if "protocolVersion" in result:
        return f"protocol {result['protocolVersion']}"
    blocks = result.get("content") or result.get("contents") or result.get("messages")
    texts = [as_object(block) for block in blocks] if isinstance(blocks, list) else []
    texts = [as_object(block.get("content")) or block for block in texts]
    said = " ".join(
        f'"{block["text"]}"' if isinstance(block.get("text"), str) else str(block.get("type", "data"))
        for block in texts[:3]
    )
    if not said and "structuredContent" in result:
        said = msgspec.json.encode(result["structuredContent"]).decode()
    return f"isError: {said}" if result.get("isError") is True else said or "ok"


def exchange_lines(each: Heard, *, full: bool = False) -> Iterator[str]:
    """The lines of one exchange: its messages as pretty JSON, each with its time. full: all lines."""
    exchange = each.exchange
    place = f"exchange {each.number}, session {exchange.session}, at {exchange.at:.3f} s"
    yield f"{place}: {sanitize.one_line(each.title)}"
    for name, value in exchange.headers.items():
        yield sanitize.one_line(f"  {name}: {value}")
    if exchange.request:
        yield "request"
        yield from _message_lines(exchange.request, full)
    if exchange.response is not None:
        yield f"HTTP {exchange.response.status}"
        for name, value in exchange.response.headers.items():
            yield sanitize.one_line(f"  {name}: {value}")
    for event in exchange.events:
        yield sanitize.one_line(f"{event.kind}, after {event.after:.3f} s{_details(event)}")
        yield from _message_lines(event.data, full)


def _details(event: Event) -> str:
    said = list(event.fields)
    if event.code is not None:
        said.append(f"code {event.code}")
    if event.cut:
        said.append("the connection broke")
    return f" ({', '.join(said)})" if said else ""


def _message_lines(data: bytes, full: bool) -> Iterator[str]:
    if not data:
        return
    shown = sanitize.json_text(pretty(data)).splitlines() if is_json(data) else _text(data).splitlines()
    most = len(shown) if full else LINES
    yield from (f"  {line}" for line in shown[:most])
    if len(shown) > most:
        yield f"  … and {len(shown) - most:,} more lines: --full shows all"


def _text(data: bytes) -> str:
    return sanitize.lines(data.decode("utf-8", "backslashreplace"))


def is_json(data: bytes) -> bool:
    """Whether it is JSON."""
    try:
        decoded(data)
    except ValueError:
        return False
    return True


def pretty(data: bytes) -> str:
    """The JSON ``data``, indented; numbers stay as they are written. As it is if it can't be indented."""
    try:
        return msgspec.json.format(data, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return data.decode("utf-8", "backslashreplace")


# JSON


def as_json(cassette: Cassette, *, full: bool = False) -> JsonObject:
    """The overview for programs. full: with all messages."""
    exchanges = tuple(heard(cassette.exchanges))
    found = offers(exchanges)
    return {
        "name": cassette.name,
        "transport": cassette.transport,
        "command": list(cassette.command),
        "url": cassette.url,
        "recorder": cassette.recorder,
        "server": found.info,
        "protocol": found.protocol,
        "capabilities": found.capabilities,
        "offers": found.lists,
        "match": msgspec.to_builtins(cassette.match),
        "check": msgspec.to_builtins(cassette.check),
        "sessions": msgspec.to_builtins(cassette.sessions),
        "masked": msgspec.to_builtins(cassette.masked),
        "exchanges": [exchange_as_json(each, full=full) for each in exchanges],
    }


def exchange_as_json(each: Heard, *, full: bool = True) -> JsonObject:
    """One exchange for programs. full: with its messages."""
    exchange = each.exchange
    told: JsonObject = {
        "number": each.number,
        "session": exchange.session,
        "at": exchange.at,
        "took": each.took,
        "method": each.request.method if each.request else "",
        "name": each.request.name if each.request else "",
        "outcome": outcome(each),
        "error": each.reply.error if each.reply else None,
    }
    if exchange.verb:
        told["verb"] = exchange.verb
    if exchange.response is not None:
        told["status"] = exchange.response.status
    if not full:
        return told
    return told | {
        "headers": dict(exchange.headers),
        "request": _value(exchange.request),
        "events": [
            {
                "kind": event.kind,
                "after": event.after,
                "data": _value(event.data),
                **({"code": event.code} if event.code is not None else {}),
                **({"cut": True} if event.cut else {}),
                **({"fields": list(event.fields)} if event.fields else {}),
            }
            for event in exchange.events
        ],
    }


def _value(data: bytes) -> object:
    """JSON as it is, other data as text, None for none."""
    if not data:
        return None
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        data.decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return data.decode("utf-8", "backslashreplace")
    return msgspec.Raw(data)


def exchange_of(cassette: Cassette, number: int) -> Heard | None:
    """The exchange ``number``, from 1; None if there is none."""
    return next((each for each in heard(cassette.exchanges) if each.number == number), None)
