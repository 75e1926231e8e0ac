"""Cassettes written by hand, for tests of what reads them."""

import json
import subprocess
import time
from collections.abc import Mapping, Sequence

from mcpzip.cassettes.cassette import Cassette, Event, Exchange, Session

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"sampling": {}},
    "clientInfo": {"name": "t", "version": "1"},
}


def message(**members: object) -> bytes:
    """A JSON-RPC message."""
    return json.dumps({"jsonrpc": "2.0", **members}, separators=(",", ":")).encode()


def asked(
    number: int,
    method: str,
    params: Mapping[str, object] | None = None,
    *,
    result: object = None,
    error: object = None,
    before: Sequence[Event] = (),
    session: int = 1,
) -> Exchange:
    """A request and its answer: ``result``, ``error``, or none. before: the events before it."""
    request = message(id=number, method=method, **({} if params is None else {"params": params}))
    events = list(before)
    if result is not None:
        events.append(Event(kind="reply", after=0.5, data=message(id=number, result=result)))
    if error is not None:
        events.append(Event(kind="reply", after=0.5, data=message(id=number, error=error)))
    return Exchange(session=session, at=float(number), request=request, events=tuple(events))


def told(method: str, at: float, params: Mapping[str, object] | None = None, session: int = 1) -> Exchange:
    """A notification of the client."""
    request = message(method=method, **({} if params is None else {"params": params}))
    return Exchange(session=session, at=at, request=request)


def opened(result: Mapping[str, object], session: int = 1) -> list[Exchange]:
    """The handshake, of which ``result`` is the server's answer."""
    return [
        asked(1, "initialize", HELLO, result=result, session=session),
        told("notifications/initialized", 1.5, session=session),
    ]


def shop(session: int = 1) -> list[Exchange]:
    """A session with a server that sells: handshake, list, a call that fails, one with a notification."""
    greeting = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "shop", "version": "2"},
    }
    progress = message(method="notifications/progress", params={"progressToken": 4, "progress": 1})
    return [
        *opened(greeting, session),
        asked(2, "tools/list", result={"tools": [{"name": "pay"}, {"name": "look"}]}, session=session),
        asked(
            3,
            "tools/call",
            {"name": "pay", "arguments": {"id": 7}},
            error={"code": -32602, "message": "No such \x1b[31minvoice"},
            session=session,
        ),
        asked(
            4,
            "tools/call",
            {"name": "look", "arguments": {}},
            result={"content": [{"type": "text", "text": "42"}]},
            before=[Event(kind="send", after=0.1, data=progress)],
            session=session,
        ),
    ]


def cassette(*exchanges: Exchange, **keys: object) -> Cassette:
    """A cassette of these exchanges."""
    numbers = sorted({each.session for each in exchanges})
    sessions = tuple(Session(number=number, started="2026-11-26T21:00:00Z") for number in numbers)
    told = {"name": "shop", "command": ("shop-server",), "recorder": "test 1", "sessions": sessions, **keys}
    return Cassette(**told).with_exchanges(exchanges)  # type: ignore[arg-type]


def recorded(command: Sequence[str], messages: Sequence[bytes], *, answers: Mapping[str, object]) -> Cassette:
    """A session with a server on stdio, recorded. messages: those of the client; each waits for the answer to
    the one before. answers: the results that the client gives to questions, by method.
    """
    began = time.monotonic()
    exchanges = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        for text in messages:
            at, events = time.monotonic() - began, []
            process.stdin.write(text + b"\n")
            process.stdin.flush()
            while (number := json.loads(text).get("id")) is not None:
                line = process.stdout.readline().rstrip()
                after = time.monotonic() - began - at
                if not line:
                    events.append(Event(kind="end", after=after))
                    break
                came = json.loads(line)
                if "method" not in came and came.get("id") == number:
                    events.append(Event(kind="reply", after=after, data=line))
                    break
                events.append(Event(kind="send", after=after, data=line))
                if "id" in came:
                    answer = message(id=came["id"], result=answers[came["method"]])
                    process.stdin.write(answer + b"\n")
                    process.stdin.flush()
                    events.append(Event(kind="receive", after=after + 1e-6, data=answer))
            exchanges.append(Exchange(at=at, request=text, events=tuple(events)))
        process.stdin.close()
    return cassette(*exchanges, command=tuple(command))
