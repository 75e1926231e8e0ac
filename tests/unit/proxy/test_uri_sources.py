"""Whose result named a URI is remembered, within bounds, without touching the result."""

import asyncio
import json
from typing import Any

import pytest

from mcpzip.model import limits
from mcpzip.model.limits import NAMED_BLOCKS
from mcpzip.model.principal import Principal
from mcpzip.proxy import uri_sources as mentioning
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.uri_sources import UriSources


async def told(
    sources: UriSources, client: Client, server: str, result: Any, method: str = "tools/call"
) -> None:
    raw = result if isinstance(result, bytes) else json.dumps(result).encode()
    sources.record(client, server, method, raw)
    await asyncio.sleep(0)


def link(uri: str) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": "n"}


def embedded(uri: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "text": "x"}}


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", {"content": [{"type": "text", "text": "x"}, 5, link("f:é")]}),
        ("tools/call", {"content": [embedded("f:é")]}),
        ("tools/call", b'{"content":[{"type":"resource_link","uri":"f:\\u00e9","title":"\\ud800"}]}'),
        ("prompts/get", {"messages": [{"role": "user", "content": link("f:é")}]}),
        ("prompts/get", {"messages": [{"role": "user", "content": [embedded("f:é")]}]}),
        ("resources/read", {"contents": [{"uri": "f:é", "text": "x"}]}),
    ],
)
async def test_every_way_to_name_a_resource_is_remembered(method: str, result: Any) -> None:
    sources, client, other = UriSources(2), Client(), Client()
    await told(sources, client, "files", result, method)
    assert sources.sources_of(client, "f:é") == ({"files"}, frozenset())
    assert sources.sources_of(client, "f:e") == (frozenset(), frozenset())
    assert sources.sources_of(other, "f:é") == (frozenset(), frozenset())
    await told(sources, client, "evil", result, method)
    assert sources.sources_of(client, "f:é")[0] == {"files", "evil"}
    sources.remove_client(client)
    assert sources.sources_of(client, "f:é") == (frozenset(), frozenset())


@pytest.mark.parametrize("uri", ["f:\U0001f600", "f:\ud800", "f:\ud800\U0001f600"])
async def test_however_a_uri_is_spelt_it_is_the_same(uri: str) -> None:
    """An emoji as ``json.dumps`` spells it was remembered as two spaces: the read went to whoever spelt it
    otherwise."""
    sources, client = UriSources(3), Client()
    escaped = json.dumps({"content": [link(uri)], "lone": "\ud800"})
    await told(sources, client, "files", escaped.encode())
    await told(sources, client, "upper", escaped.replace("\\ud8", "\\uD8").replace("\\ude", "\\uDE").encode())
    assert sources.sources_of(client, uri) == ({"files", "upper"}, frozenset())


async def test_of_a_result_of_very_many_blocks_nobody_knows_what_it_named() -> None:
    """4 MiB of them were looked through for 1.1 s, on the event loop."""
    sources, client = UriSources(2), Client()
    blocks = b",".join([b"{}"] * (NAMED_BLOCKS + 1))
    for result in (b'{"content":[%b],"x":"resource"}', b'{"messages":[{"content":[%b]}],"x":"resource"}'):
        await told(sources, client, "evil", result % blocks)
        assert sources.sources_of(client, "f:1") == (frozenset(), {"evil"})


async def test_requests_that_cannot_be_told_apart_are_one_client() -> None:
    sources = UriSources(2)
    await told(sources, Client(has_session=False), "files", {"content": [link("f:1")]})
    assert sources.sources_of(Client(has_session=False), "f:1")[0] == {"files"}
    assert not sources.sources_of(Client(), "f:1")[0]


async def test_no_server_pushes_out_what_another_named_and_who_named_too_much_may_have_named_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mentioning, "NAMED_URIS", 3)
    sources, client = UriSources(2), Client()
    await told(sources, client, "files", {"content": [link("f:1"), link("f:2"), link("f:3")]})
    for number in range(9):
        await told(sources, client, "evil", {"content": [link(f"e:{number}")]})
    assert sources.sources_of(client, "f:1") == ({"files"}, {"evil"})
    assert sources.sources_of(client, "e:0") == (frozenset(), {"evil"})
    assert sources.sources_of(client, "e:8") == ({"evil"}, frozenset())
    many = {"content": [link(f"m:{number}") for number in range(9)]}
    await told(sources, client, "files", many)
    assert sources.sources_of(client, "m:8")[1] == {"files", "evil"}


@pytest.mark.parametrize(
    "result",
    [
        b'{"content":[{"type":"resource_link","uri":"f:1","name":"' + b"x" * 200 + b'"}]}',
        b'{"content":[{"type":"resource_link","uri":"f:\\ud8"}]}',
        b'{"content":[' + b"[" * 200_000 + b'"resource"',
    ],
)
async def test_a_result_that_is_too_long_or_unreadable_may_have_named_anything(
    result: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mentioning, "NAMED_IN", 100 if result.endswith(b"}]}") else 1 << 20)
    sources, client = UriSources(2), Client()
    await told(sources, client, "files", result)
    assert sources.sources_of(client, "f:1") == (frozenset(), {"files"})


async def test_nothing_is_looked_through_that_names_nothing_or_where_there_is_one_server() -> None:
    several, alone, client = UriSources(2), UriSources(1), Client()
    several.record(client, "text", "tools/call", b'{"content":[{"type":"text","text":"f:1"}]}')
    alone.record(client, "alone", "tools/call", json.dumps({"content": [link("f:1")]}).encode())
    assert not several._queue
    assert not alone._queue
    several.record(client, "links", "tools/call", json.dumps({"content": [link("f:1")]}).encode())
    assert len(several._queue) == 1  # once it was handed on
    await asyncio.sleep(0)
    assert not several._queue
    assert several.sources_of(client, "f:1")[0] == {"links"}
    several.record(
        client, "long", "tools/call", b'{"content":[{"type":"text","text":"%b"}]}' % (b"x" * (1 << 20))
    )
    assert len(several._queue) == 1
    assert several.sources_of(client, "f:2") == (frozenset(), frozenset())


async def test_of_people_so_many_are_remembered_and_sessions_are_no_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PEOPLE_NAMED", 4)
    sources = UriSources(2)

    def person(name: str) -> Client:
        return Client(has_session=False, principal=Principal("https://i", name))

    sessions = [Client() for _ in range(5)]
    people = [person(str(number)) for number in range(3)]
    for client in (*people, *sessions):
        await told(sources, client, "files", {"content": [link("f:x")]})
    for client in (*sessions, *people):
        assert sources.sources_of(client, "f:x")[0] == {"files"}
    assert sources.sources_of(person("0"), "f:x")[0] == {"files"}  # whatever request they make
    for number in range(3, 6):
        await told(sources, person(str(number)), "files", {"content": [link("f:x")]})
    known = [bool(sources.sources_of(person(str(number)), "f:x")[0]) for number in range(6)]
    assert known == [False, False, True, True, True, True]
    assert all(sources.sources_of(client, "f:x")[0] for client in sessions)
