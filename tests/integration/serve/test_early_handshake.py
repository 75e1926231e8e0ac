"""With what an earlier run kept, everything but a call is answered before any server has said a word."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import INITIALIZE, STAMP, Client, Json, encoded, serving, until
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

PAY: Json = {"name": "pay_invoice", "description": "Pay an invoice"}


def from_then_on(kind: str, **options: object) -> list[Json]:
    """The fault, in every process but the first."""
    return [{"kind": kind, "run": run, **options} for run in range(2, 6)]


@pytest.fixture
def warm(fake_mcp: Fake, tmp_path: Path) -> list[FakeServer]:
    """Three servers that were well once, when their tools were kept, and that hang ever since."""
    fakes = [
        fake_mcp(name="silent", tools=[PAY], faults=from_then_on("silence")),
        fake_mcp(name="asleep", tools=[PAY], faults=from_then_on("slow-start", seconds=60)),
        fake_mcp(  # it is sent initialize, server/discover and tools/list once
            name="mute",
            tools=[PAY],
            transport="http",
            era="modern",
            faults=[{"kind": "hang", "nth": 4, "times": 999}],
        ),
    ]
    with serving(tmp_path, *fakes) as client:
        until(lambda: client.status().count("connected, 1 tools") == len(fakes))
    return fakes


def answered_by(fake: FakeServer) -> int:
    """How often it listed its tools."""
    return sum("tools" in (line.message.get("result") or {}) for line in fake.record.sent())


def test_nothing_waits_for_a_server_that_it_does_not_need(warm: list[FakeServer], tmp_path: Path) -> None:
    before = [answered_by(fake) for fake in warm]
    for card in (True, False):
        for modern in (True, False):
            if not card:
                (tmp_path / "cache" / "config.json.handshake.json").unlink()
            with serving(tmp_path, begin=not modern) as client:
                if modern:
                    client.begin_modern().ask("server/discover").result["supportedVersions"]
                tools = client.ask("tools/list").result["tools"]
                assert [tool["name"] for tool in tools] == ["search_tools", "describe_tool", "execute_tool"]
                found = client.search("pay an invoice")
                described = client.use("describe_tool", name="asleep__pay_invoice").text
            assert [fake.name for fake in warm if f"{fake.name}__pay_invoice" not in found] == [], found
            assert json.loads(described.splitlines()[0])["description"] == "Pay an invoice"
    assert [answered_by(fake) for fake in warm] == before


LEGACY_OPENING = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "two", "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "ping"},
    {"jsonrpc": "2.0", "id": 4, "method": "tasks/list"},
    {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}},
]
MODERN_OPENING = [
    {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": STAMP}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": STAMP}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {"_meta": STAMP}},
]


@pytest.mark.parametrize("opening", [LEGACY_OPENING, MODERN_OPENING])
def test_the_bytes_are_the_same_with_and_without_the_front_desk(
    fake_mcp: Fake, tmp_path: Path, opening: list[Json]
) -> None:
    fake = fake_mcp(name="shop", tools=[PAY])
    lines = b"".join(map(encoded, opening))
    talks = []
    for pieces in ([lines], [lines], list(map(encoded, opening)), [lines[:100], lines[100:]]):
        with serving(tmp_path, fake, begin=False) if not talks else serving(tmp_path, begin=False) as client:
            talks.append(heard_after(client, pieces))
    assert (tmp_path / "cache" / "config.json.handshake.json").exists()
    assert len(talks[0]) == sum("id" in message for message in opening)
    assert talks[0] == talks[1] == talks[2] == talks[3]


def heard_after(client: Client, pieces: list[bytes]) -> list[bytes]:
    for piece in pieces:
        client.write(piece)
    assert client.leave() == 0
    return client.all_heard()
