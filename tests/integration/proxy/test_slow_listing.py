"""A server that lists later than a client waits: the client hears of it, and keeps no empty list."""

import json
from pathlib import Path

import pytest
from helpers.driver import INITIALIZE, LEGACY_SCRIPT, STAMP, Json, comes_true, encoded, proxy_of, scripted

from mcpzip.proxy import first_listings
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.session import Session

PAY: Json = {"name": "shop__pay", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_empty_list_is_followed_by_a_change_and_kept_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(first_listings, "FIRST_LISTING", 0.01)
    go = tmp_path / "go"
    waits = f"""
if method == "tools/list":
    while not os.path.exists({str(go)!r}): time.sleep(0.01)
"""
    shop = scripted(waits + LEGACY_SCRIPT)
    said: list[Json] = []
    async with proxy_of(tmp_path, others={"shop": shop}, expose="direct", listed=False) as proxy:
        endpoint = Endpoint(proxy)
        session = Session(endpoint, lambda line: said.extend(map(json.loads, line.splitlines())))

        async def ask(id: int, method: str, **params: object) -> Json:
            stamp = {"_meta": STAMP} if era == "modern" else {}
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, **stamp}}
            session.receive(encoded(message))
            return (await comes_true(lambda: [one for one in said if one.get("id") == id]))[0]["result"]

        if era == "legacy":
            greeting = await ask(1, "initialize", **INITIALIZE)
        else:
            greeting = await ask(1, "server/discover")
            wanted = {"notifications": {"toolsListChanged": True}, "_meta": STAMP}
            session.receive(
                encoded({"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": wanted})
            )
            await comes_true(lambda: [one for one in said if "acknowledged" in one.get("method", "")])
        assert greeting["capabilities"]["tools"]["listChanged"] is True
        proxy.start(session.client)
        empty = await ask(3, "tools/list")
        assert empty["tools"] == []
        assert empty.get("ttlMs", 0) == 0
        words = endpoint.handshake_results()
        assert words is not None
        assert (words.tools, words.modern_tools) == (
            None,
            None,
        )  # the early handshake doesn't answer with them next time
        go.touch()
        changed = "notifications/tools/list_changed"
        await comes_true(lambda: [one for one in said if one.get("method") == changed])
        assert (await ask(4, "tools/list"))["tools"] == [PAY]
        await session.finish(0)
