"""Cassettes that tests write by hand, and their servers."""

import json
from collections.abc import Iterable
from pathlib import Path

from mcpzip.cassettes import files
from mcpzip.cassettes.cassette import Cassette, Event, Exchange, Match, Transport
from mcpzip.cassettes.toml_values import Value

KEY = "io.modelcontextprotocol/"


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def opened(id: object = 0, version: str = "2025-06-18") -> bytes:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "then", "version": "1"},
    }
    return line(id=id, method="initialize", params=params)


def greeted(id: object = 0, version: str = "2025-06-18") -> bytes:
    info = {"name": "shop", "version": "7"}
    return line(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})


def call(id: object, tool: str = "pay", token: object = None, **arguments: object) -> bytes:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return line(id=id, method="tools/call", params={"name": tool, "arguments": arguments, **meta})


def modern(id: object, method: str, **params: object) -> bytes:
    meta = {f"{KEY}protocolVersion": "2026-07-28", f"{KEY}clientCapabilities": {}}
    return line(id=id, method=method, params={**params, "_meta": meta})


def said(id: object, text: str) -> bytes:
    return line(id=id, result={"content": [{"type": "text", "text": text}]})


def reply(after: float, data: bytes) -> Event:
    return Event(kind="reply", after=after, data=data)


def send(after: float, data: bytes) -> Event:
    return Event(kind="send", after=after, data=data)


def receive(after: float, data: bytes) -> Event:
    return Event(kind="receive", after=after, data=data)


def handshake(session: int = 1) -> list[Exchange]:
    """The opening of a legacy session; it ends before second 1."""
    return [
        Exchange(session=session, at=0.1, request=opened(), events=(reply(0.1, greeted()),)),
        Exchange(session=session, at=0.3, request=line(method="notifications/initialized")),
    ]


def saved(
    folder: Path,
    exchanges: Iterable[Exchange],
    transport: Transport = "stdio",
    ignore: tuple[str, ...] = (),
    **more: Value,
) -> Path:
    """A cassette in a file."""
    path = folder / "shop.toml"
    cassette = Cassette(name="shop", transport=transport, match=Match(ignore=ignore)).with_exchanges(
        exchanges
    )
    files.save(str(path), cassette, more)
    return path
