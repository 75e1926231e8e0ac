"""The text of a cassette file: TOML, with large messages in files beside it.

    cassette = 1
    name = "time"
    [recorded]
    transport = "stdio"
    command = ["mcp-server-time"]
    [match]
    ignore = ["arguments.now"]
    [check]
    ignore = ["structuredContent.time"]

    [[sessions]]
    number = 1
    started = "2026-11-26T21:00:00Z"

    [[exchanges]]
    session = 1
    at = 0.25
    request = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay","arguments":{"id":7}}}'
    took = 0.04
    reply = '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'

    [[exchanges.events]]
    after = 0.01
    send = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}'

Data (``request``, ``reply``, ``send``, …) is a string; or ``{ file = "time.bodies/2.json" }``; or
``{ base64 = "…" }`` for bytes that are no UTF-8. The reply of an exchange can stand in the exchange, if it
came last and has no fields; ``took`` is then its ``after``.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import cast

import msgspec
from msgspec import Struct

from mcpzip.cassettes.cassette import (
    FORMAT,
    Cassette,
    Check,
    Event,
    Exchange,
    Kind,
    Masked,
    Match,
    Response,
    Session,
    Transport,
)
from mcpzip.cassettes.toml_values import Value, toml_key, toml_value

KEYS = ("cassette", "recorded", "match", "check", "sessions", "exchanges", "masked")
"""The keys of the file that are a cassette's. The others are those of a scenario."""

_KINDS: tuple[Kind, ...] = ("send", "receive", "reply", "stderr", "end")
ReadBody = Callable[[str], bytes]
"""Reads the file of a body by its path as written in the cassette. Raises ValueError if it can't be read."""


class _Data(Struct, frozen=True, forbid_unknown_fields=True):
    """Data that isn't written as a string."""

    file: str = ""
    base64: str = ""


_AnyData = str | _Data


class _Event(Struct, frozen=True, forbid_unknown_fields=True):
    after: float = 0.0
    send: _AnyData | None = None
    receive: _AnyData | None = None
    reply: _AnyData | None = None
    stderr: _AnyData | None = None
    end: _AnyData | None = None
    fields: tuple[str, ...] = ()
    code: int | None = None
    cut: bool = False


class _Exchange(Struct, frozen=True, forbid_unknown_fields=True):
    session: int = 1
    at: float = 0.0
    request: _AnyData = ""
    verb: str = ""
    headers: dict[str, str] = {}
    response: Response | None = None
    took: float = 0.0
    reply: _AnyData | None = None
    events: tuple[_Event, ...] = ()


class _Recorded(Struct, frozen=True, forbid_unknown_fields=True):
    transport: Transport = "stdio"
    command: tuple[str, ...] = ()
    url: str = ""
    recorder: str = ""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    cassette: int
    recorded: _Recorded = _Recorded()
    match: Match = Match()
    check: Check = Check()
    sessions: tuple[Session, ...] = ()
    exchanges: tuple[_Exchange, ...] = ()
    masked: tuple[Masked, ...] = ()


def from_mapping(data: Mapping[str, object], read_body: ReadBody) -> Cassette:
    """The cassette of a file's data; keys other than `KEYS` and ``name`` are ignored.

    Raises msgspec.ValidationError, with the path of the key; and ValueError, with a sentence, if a body can't
    be read or the format is of a newer version.
    """
    version = data.get("cassette")
    if isinstance(version, int) and version > FORMAT:
        raise ValueError(f"cassette is {version}, a newer format than {FORMAT}; use a newer mcpzip")
    file = msgspec.convert({key: data[key] for key in KEYS if key in data}, _File)
    name = data.get("name")
    cassette = Cassette(
        name=name if isinstance(name, str) else "",
        transport=file.recorded.transport,
        command=file.recorded.command,
        url=file.recorded.url,
        recorder=file.recorded.recorder,
        match=file.match,
        check=file.check,
        sessions=file.sessions,
        masked=file.masked,
    )
    return cassette.with_exchanges(_exchange(each, read_body) for each in file.exchanges)


def _exchange(written: _Exchange, read_body: ReadBody) -> Exchange:
    events = [_event(each, read_body) for each in written.events]
    if written.reply is not None:
        events.append(Event(kind="reply", after=written.took, data=_bytes(written.reply, read_body)))
    return Exchange(
        session=written.session,
        at=written.at,
        request=_bytes(written.request, read_body),
        verb=written.verb,
        headers=written.headers,
        response=written.response,
        events=tuple(sorted(events, key=lambda event: event.after)),
    )


def _event(written: _Event, read_body: ReadBody) -> Event:
    present = [(kind, data) for kind in _KINDS if (data := getattr(written, kind)) is not None]
    if len(present) != 1:
        raise ValueError(f"an event has {len(present)} of {', '.join(_KINDS)}; write exactly one")
    kind, data = present[0]
    return Event(
        kind=kind,
        after=written.after,
        data=_bytes(data, read_body),
        fields=written.fields,
        code=written.code,
        cut=written.cut,
    )


def _bytes(data: _AnyData, read_body: ReadBody) -> bytes:
    if isinstance(data, str):
        return data.encode()
    if data.file:
        return read_body(data.file)
    try:
        return base64.b64decode(data.base64, validate=True)
    except binascii.Error:
        raise ValueError("base64 holds something else than Base64; write the bytes in Base64") from None


# Writing

KeepBody = Callable[[bytes, bytes], str]
"""Returns the path of the file that data was written to, or "" if it is to stand in the cassette itself. The
second argument is the request that the data belongs to, after which the file is named."""


def head_text(cassette: Cassette, more: Mapping[str, Value] | None = None) -> str:
    """The beginning of the file, up to its sessions. more: keys of the scenario that stand in it too."""
    recorded = {
        key: cast(Value, value)
        for key, value in (
            ("transport", cassette.transport),
            ("command", cassette.command),
            ("url", cassette.url),
            ("recorder", cassette.recorder),
        )
        if value
    }
    top: dict[str, Value] = {"cassette": FORMAT, "name": cassette.name, **(more or {})}
    match = cast(dict[str, Value], msgspec.to_builtins(cassette.match))
    check = cast(dict[str, Value], msgspec.to_builtins(cassette.check))
    return "".join(
        (
            _table("", top),
            _table("[recorded]", recorded),
            _table("[match]", match) if match else "",
            _table("[check]", check) if check else "",
        )
    )


def session_text(session: Session) -> str:
    """The table of a session."""
    return _table("[[sessions]]", {"number": session.number, "started": session.started})


def masked_text(masked: Masked) -> str:
    """The table of a masked secret."""
    return _table("[[masked]]", {"mask": masked.mask, "where": masked.where, "why": masked.why})


def exchange_text(exchange: Exchange, keep_body: KeepBody) -> str:
    """The tables of an exchange."""
    top: dict[str, Value] = {"session": exchange.session, "at": exchange.at}
    if exchange.verb:
        top["verb"] = exchange.verb
    if exchange.headers:
        top["headers"] = exchange.headers
    if exchange.request:
        top["request"] = _data(exchange.request, exchange.request, keep_body)
    if exchange.response is not None:
        top["response"] = {"status": exchange.response.status, "headers": exchange.response.headers}
    events = list(exchange.events)
    if events and events[-1].kind == "reply" and not events[-1].fields:
        reply = events.pop()
        top["took"] = reply.after
        top["reply"] = _data(reply.data, exchange.request, keep_body)
    return _table("[[exchanges]]", top) + "".join(
        _event_text(event, exchange.request, keep_body) for event in events
    )


def cassette_text(cassette: Cassette, keep_body: KeepBody, more: Mapping[str, Value] | None = None) -> str:
    """The whole file."""
    return "".join(
        (
            head_text(cassette, more),
            *map(session_text, cassette.sessions),
            *(exchange_text(exchange, keep_body) for exchange in cassette.exchanges),
            *map(masked_text, cassette.masked),
        )
    )


def _event_text(event: Event, request: bytes, keep_body: KeepBody) -> str:
    values: dict[str, Value] = {"after": event.after, event.kind: _data(event.data, request, keep_body)}
    if event.fields:
        values["fields"] = event.fields
    if event.code is not None:
        values["code"] = event.code
    if event.cut:
        values["cut"] = True
    return _table("[[exchanges.events]]", values)


def _data(data: bytes, request: bytes, keep_body: KeepBody) -> Value:
    if file := keep_body(data, request):
        return {"file": file}
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _table(header: str, values: Mapping[str, Value]) -> str:
    lines = [header] if header else []
    lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n\n"
