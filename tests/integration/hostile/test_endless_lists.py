"""A server whose lists have no end is named with its reason, and harms nobody; what killed writers left
beside a config goes at the next start.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, comes_true, proxy_of, scripted, serving, until
from mcpzip_fakes.launch import FakeServer

from mcpzip.model import limits

Fake = Callable[..., FakeServer]

GREETS = """
if method == "server/discover": refuse()
elif method == "initialize":
    has = {"tools": {}, "prompts": {}}
    answer({"protocolVersion": "2025-11-25", "capabilities": has, "serverInfo": {"name": "e"}})
"""
ENDLESS = """
elif method == "%s/list":
    answer({"%s": [{"name": "x", "description": "y" * 9_000}], "nextCursor": str(m["id"])})
"""
TOOLS = """
elif method == "tools/list": answer({"tools": [{"name": "a"}]})
"""


def endless(kind: str, rest: str = "") -> Json:
    return scripted((GREETS + ENDLESS % (kind, kind) + rest).replace("\n\n", "\n"))


async def test_a_server_whose_tools_have_no_end_is_failing_and_the_others_are_listed(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIST_BYTES", 50_000)
    shop = fake_mcp(name="shop", tools=["pay"])
    evil = endless("tools")
    async with proxy_of(tmp_path, shop, others={"evil": evil}) as proxy:
        states = {one.name: one for one in proxy.status()}
        assert states["evil"].state == "failing"
        assert "over 50,000 bytes" in states["evil"].reason
        assert states["shop"].tools == 1
        assert [entry.name for entry in proxy.catalog.entries] == ["shop__pay"]


async def test_a_server_whose_prompts_have_no_end_keeps_its_tools_and_has_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIST_BYTES", 50_000)
    evil = endless("prompts", TOOLS)
    async with proxy_of(tmp_path, others={"evil": evil}) as proxy:
        warnings = await comes_true(lambda: proxy.status()[0].warnings)
        assert any("list of prompts has over 50,000 bytes" in each for each in warnings)
        assert [entry.name for entry in proxy.catalog.entries] == ["evil__a"]


def test_drafts_of_killed_writes_are_removed_at_start(fake_mcp: Fake, tmp_path: Path) -> None:
    old, young = ".tools.json.0123456789ab.tmp", ".config.json.index.bin.ba9876543210.tmp"
    for folder in ("cache", "auth"):
        (tmp_path / folder).mkdir(mode=0o700)
        (tmp_path / folder / old).write_text("half")
        (tmp_path / folder / young).write_text("half")
        os.utime(tmp_path / folder / old, (1, 1))
    (tmp_path / "cache" / "notes.tmp").write_text("not ours")
    os.utime(tmp_path / "cache" / "notes.tmp", (1, 1))
    with serving(tmp_path, fake_mcp(name="shop", tools=["pay"])) as client:
        assert client.ask("ping").result == {}
        until(lambda: not any((tmp_path / folder / old).exists() for folder in ("cache", "auth")))
    assert sorted(path.name for path in (tmp_path / "auth").iterdir()) == [young]
    there = {path.name for path in (tmp_path / "cache").iterdir()}
    assert old not in there
    assert {young, "notes.tmp"} <= there  # somebody may be writing the one, and the other is nobody's draft
