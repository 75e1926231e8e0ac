"""`transparent` can't be told from talking to the server."""

import json
from pathlib import Path

import pytest
from driver import LEGACY_SCRIPT, STAMP, Client, Json, scripted, serving

MODERN_SCRIPT = """
stamp = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
if method == "server/discover": answer({"supportedVersions": VERSIONS, "capabilities": CAN, **stamp})
elif method == "tools/list": answer({"tools": [{"name": "pay", "inputSchema": {"type": "object"}}], **stamp})
"""
SAID = '{"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "resources": {}}}'
MODERN_BEFORE = 'VERSIONS, CAN = ["2026-07-28"], {"tools": {}, "resources": {}}'


def modern(client: Client) -> Client:
    client.meta = STAMP
    return client


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
else: refuse()
"""
    shop = scripted(MODERN_SCRIPT + read, before=MODERN_BEFORE)
    with serving(tmp_path, others={"shop": shop}, begin=False, expose="transparent") as client:
        answer = modern(client).ask("resources/read", {"uri": "x:y"})
        assert json.loads(client.heard[-1])["error"] == error, answer
