"""A stdio server that writes a line without an end (docs/security.md)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import alive, comes_true, executed, proxy_of, text_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.model import limits

Fake = Callable[..., FakeServer]


async def test_a_line_without_an_end_ends_its_server_and_the_next_call_starts_another(
    fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DROPPED", limits.MESSAGE + limits.MiB)
    endless = {"kind": "endless", "tool": "pay", "size": 1_000 * limits.MESSAGE, "times": 1, "run": 1}
    shop = fake_mcp(name="shop", era="legacy", tools=["pay"], faults=[endless])
    async with proxy_of(tmp_path, shop) as proxy:
        await executed(proxy, "proxy_refresh", {})
        result = await executed(proxy, "shop__pay", {"n": 1})
        assert "a line of more than" in text_of(result)
        assert "may have run" in text_of(result)
        first, *_ = shop.record.events("start")
        await comes_true(lambda: not alive(first.pid))
        assert text_of(await executed(proxy, "shop__pay", {"n": 2})) == '{"n": 2}'
