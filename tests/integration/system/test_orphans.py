"""What a server leaves behind in a session of its own is ended with the server, and nobody else is."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, alive, executed, family, left_of, pool_of, proxy_of, serving, until
from mcpzip_fakes.launch import FakeServer

from mcpzip.system.orphans import MARK_VARIABLE, find_marked

Fake = Callable[..., FakeServer]
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems tell nobody of environments"
)
DAEMON: Json = {"kind": "fork", "own_session": True}
PAY: Json = {"name": "pay", "result": {"text": "paid"}}


def with_its_daemon(fake: FakeServer) -> list[int]:
    """The server and its daemon, once both are there."""
    until(lambda: len(family(fake)) == 2)
    assert os.getsid(family(fake)[1]) == family(fake)[1]
    return family(fake)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_a_daemon_in_a_session_of_its_own_is_gone_with_its_server(
    fake_mcp: Fake, tmp_path: Path, how: str
) -> None:
    """Of 84 servers two left one."""
    shop = fake_mcp(name="shop", tools=[PAY], faults=[DAEMON])
    with serving(tmp_path, shop) as client:
        pids = with_its_daemon(shop)
        until(lambda: "connected, 1 tools" in client.status())
        if how == "end of input":
            assert client.process.stdin
            client.process.stdin.close()
        elif how == "SIGTERM":
            client.process.terminate()
        else:
            client.process.kill()
        assert left_of([client.process.pid, *pids]) == []


async def test_a_daemon_is_gone_when_its_server_is_idle(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=[DAEMON])
    async with pool_of(tmp_path, shop, idle_timeout=0.05) as pool:
        await pool.request("shop", "tools/call", b'{"name":"pay"}', timeout=10)
        pids = with_its_daemon(shop)
        await pool.close()
        assert left_of(pids) == []


async def test_each_server_has_a_mark_of_its_own_and_other_daemons_live_on(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop, bank = (fake_mcp(name=name, tools=[PAY], faults=[DAEMON]) for name in ("shop", "bank"))
    (tmp_path / "another").mkdir()
    async with proxy_of(tmp_path, shop), proxy_of(tmp_path / "another", bank) as other:
        of_shop, of_bank = with_its_daemon(shop), with_its_daemon(bank)
        async with pool_of(tmp_path, shop) as pool:  # a second process of the same server
            await pool.request("shop", "tools/call", b'{"name":"pay"}', timeout=10)
            until(lambda: len(family(shop)) == 4)
        assert left_of([pid for pid in family(shop) if pid not in of_shop]) == []
        assert all(map(alive, of_shop + of_bank))
        assert (await executed(other, "bank__pay"))["content"][0]["text"] == "paid"


async def test_a_daemon_stays_where_the_config_sets_the_mark(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY], faults=[DAEMON])
    config = {**shop.config, "env": {**shop.config.get("env", {}), MARK_VARIABLE: ""}}
    async with proxy_of(tmp_path, others={"shop": config}):
        server, daemon = with_its_daemon(shop)
    assert left_of([server]) == []
    assert alive(daemon)
    os.kill(daemon, 9)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for pid, environ in ((7, b"A=1\0MCPZIP_SERVER=abc\0"), (8, b"XMCPZIP_SERVER=abc\0"), (9, b"")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(environ)
        fields = " ".join(str(n) for n in range(4, 40))
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b) S {fields}")
    (tmp_path / "self").mkdir()
    return tmp_path


def test_only_who_bears_a_mark_is_seen(proc: Path) -> None:
    seen = find_marked(proc)
    assert {mark: [stray.pid for stray in strays] for mark, strays in seen.items()} == {"abc": [7]}
