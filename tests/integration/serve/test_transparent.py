"""`transparent` can't be told from talking to the server."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import INITIALIZE, LEGACY_SCRIPT, Json, scripted, serving
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

MODERN_SCRIPT = """
stamp = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
if method == "server/discover": answer({"supportedVersions": VERSIONS, "capabilities": CAN, **stamp})
elif method == "tools/list": answer({"tools": [{"name": "pay", "inputSchema": {"type": "object"}}], **stamp})
"""
MODERN_BEFORE = 'VERSIONS, CAN = ["2026-07-28"], {"tools": {}, "resources": {}}'


ERROR = '{"code":-32000,"message":"no","data":[1.0],"retry":{"after":1.50},"é":null}'


@pytest.mark.parametrize("expose", ["transparent", "direct", "meta"])
def test_all_members_of_an_error_pass_with_their_bytes(tmp_path: Path, expose: str) -> None:
    """Those that JSON-RPC doesn't know were dropped."""
    fail = f"""
elif method == "tools/call":
    line = '{{"jsonrpc":"2.0","id":%s,"error":%s}}' % (json.dumps(m["id"]), {ERROR!r})
    sys.stdout.buffer.write(line.encode() + b"\\n"); sys.stdout.buffer.flush()
"""
    shop = scripted(LEGACY_SCRIPT + fail)
    call: Json = {"name": "pay" if expose == "transparent" else "shop__pay", "arguments": {}}
    with serving(tmp_path, others={"shop": shop}, expose=expose) as client:
        call = call if expose != "meta" else {"name": "execute_tool", "arguments": call}
        asked = client.send("tools/call", call)
        client.hears(lambda message: message.get("id") == asked)
        line = next(line for line in client.heard if b'"error"' in line)
    assert line.strip().endswith(b'"error":%b}' % ERROR.encode())


@pytest.mark.parametrize("code", [-32002, -32042])
def test_an_error_of_a_modern_server_is_passed_to_modern_clients_as_it_is(tmp_path: Path, code: int) -> None:
    """-32002 became -32602, which is right for legacy servers only."""
    error = {"code": code, "message": "not there", "data": {"uri": "x:y"}}
    read = f"""
elif method == "resources/read": say(id=m["id"], error={error!r})
elif "id" in m: refuse()
"""
    shop = scripted(MODERN_SCRIPT + read, before=MODERN_BEFORE)
    with serving(tmp_path, others={"shop": shop}, begin=False, expose="transparent") as client:
        answer = client.begin_modern().ask("resources/read", {"uri": "x:y"})
        assert json.loads(client.heard[-1])["error"] == error, answer


SAID = (
    '{"supportedVersions":["2024-11-05","2025-06-18","2026-07-28"],"capabilities":{"tools":{}},"x":1.0,'
    '"resultType":"complete","ttlMs":0,"cacheScope":"public","instructions":"Hi."}'
)


def saying(line: str) -> str:
    """A modern server whose answer to `server/discover` is this text."""
    return f"""
if method == "server/discover":
    sys.stdout.write('{{"jsonrpc":"2.0","id":%s,"result":%s}}\\n' % (json.dumps(m["id"]), {line!r}))
    sys.stdout.flush()
elif method == "tools/list": answer({{"tools": [], "resultType": "complete"}})
elif "id" in m: refuse()
"""


def test_discovery_is_the_servers_own_answer_at_every_start(tmp_path: Path) -> None:
    """``ttlMs`` 0 became an hour, ``cacheScope`` private, and of its versions one was left."""
    with_more = SAID.replace('["2024', '["2099-01-01","2024')
    for line in (SAID, SAID, with_more):  # the second time there is a card
        others = {"shop": scripted(saying(line))}
        with serving(tmp_path, others=others, begin=False, expose="transparent") as client:
            assert client.begin_modern().ask("server/discover").raw_result == SAID.encode()


def test_a_legacy_servers_greeting_is_not_to_be_kept(tmp_path: Path) -> None:
    shop = scripted(LEGACY_SCRIPT)
    with serving(tmp_path, others={"shop": shop}, begin=False, expose="transparent") as client:
        assert client.begin_modern().ask("server/discover").result["ttlMs"] == 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_that_is_dead_is_not_one_that_has_nothing(tmp_path: Path, era: str) -> None:
    """`initialize` succeeded, and `tools/list` was empty."""
    dead: Json = {"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]}
    with serving(tmp_path, others={"shop": dead}, begin=False, expose="transparent") as client:
        if era == "legacy":
            error = client.ask("initialize", INITIALIZE).error
        else:
            error = client.begin_modern().ask("server/discover").error
        assert error["code"] == -32603
        assert error["message"].startswith("shop: ")
        assert client.ask("tools/list").error["message"].startswith("shop: ")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_that_wants_a_sign_in_is_not_dead(fake_mcp: Fake, tmp_path: Path, era: str) -> None:
    """`initialize` was refused, and nobody could be told by a call how to sign in."""
    shop = fake_mcp(name="shop", transport="http", tools=["pay"], oauth={})
    with serving(tmp_path, shop, begin=False, expose="transparent") as client:
        if era == "legacy":
            client.begin()
        else:
            assert client.begin_modern().ask("server/discover").result["supportedVersions"]
        assert client.ask("tools/list").result["tools"] == []
        assert "Run: mcpzip auth login shop" in client.use("pay").text


def test_a_resource_that_nobody_watches_is_told_of_all_the_same(tmp_path: Path) -> None:
    params = {"uri": "x:y", "more": 1.0}
    tell = f"""
elif method == "tools/call":
    say(method="notifications/resources/updated", params={params!r})
    answer({{"content": []}})
elif "id" in m: refuse()
"""
    with serving(tmp_path, others={"shop": scripted(LEGACY_SCRIPT + tell)}, expose="transparent") as client:
        client.use("pay")
        heard = client.hears(lambda message: message.get("method") == "notifications/resources/updated")
        assert heard.message["params"] == params
    with serving(tmp_path, others={"shop": scripted(LEGACY_SCRIPT + tell)}) as client:
        client.ask("tools/call", {"name": "execute_tool", "arguments": {"name": "shop__pay"}})
        client.ask("ping")
        assert not [line for line in client.heard if b"resources/updated" in line]
