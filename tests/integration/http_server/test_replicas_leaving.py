"""A replica whose connection ends just as another one forwards a call: was the call taken there or not?"""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json
from helpers.raw_http_client import SessionOf
from helpers.raw_http_server import Asked, Raw, Say, Turn, raw_server, reply
from helpers.replicas import KEY, Balancer, cluster, execute, text_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.server.replicas.replica import Replica
from mcpzip.system.sealing import KeyRing, read_key

Fake = Callable[..., FakeServer]

TAKEN = b"HTTP/1.1 100 Continue\r\n\r\n"
OVER_THERE: Json = {"content": [{"type": "text", "text": "over there"}]}


def home(*turns: tuple[bytes, bool]) -> Turn:
    """What a replica does with one call after another: what it sends first, and whether it then answers or
    closes the connection."""
    left = iter(turns)

    async def turn(asked: Asked, say: Say) -> None:
        first, answers = next(left)
        if first:
            await say(first)
        if not answers:
            raise ConnectionError
        await say(reply(OVER_THERE, asked.message["id"]))

    return turn


def session_at(raw: Raw, web: Balancer) -> SessionOf:
    """A session that began at ``raw``, as a client uses it at the replica in ``web``."""
    address = raw.url.removeprefix("http://").removesuffix("/mcp")
    sealed = Replica(KeyRing([read_key(KEY)]), address).seal_session("2025-11-25", b"{}", b"{}", None)
    headers = {"Mcp-Session-Id": sealed, "MCP-Protocol-Version": "2025-11-25"}
    return SessionOf(web.replicas[0].port, headers=headers)


@pytest.mark.parametrize(
    ("turns", "runs_here"),
    [
        pytest.param([(TAKEN, True), (b"", False)], True, id="closed when it was idle"),
        pytest.param([(TAKEN, True), (TAKEN, False)], False, id="closed after it took the call"),
        pytest.param([(b"", True), (b"", False)], False, id="never says that it takes a call"),
        pytest.param([(TAKEN, True), (TAKEN[:12], False)], False, id="cut while it says so"),
    ],
)
async def test_a_call_that_nobody_took_runs_here_and_no_other(
    fake_mcp: Fake, tmp_path: Path, turns: list[tuple[bytes, bool]], runs_here: bool
) -> None:
    fake = fake_mcp("shared")
    async with raw_server(execute_tool=home(*turns)) as raw, cluster(tmp_path, fake, count=1) as web:
        session = session_at(raw, web)
        assert text_of(await execute(session, "shared__say", {"word": "first"}, 1)) == "over there"
        second = await execute(session, "shared__say", {"word": "second"}, 2)
        if runs_here:
            assert text_of(second) == "second"
        else:
            assert "may have run" in second.last["error"]["message"]
        assert len(raw.asked) == 2
        assert len(fake.record.calls("say")) == runs_here
        assert all(asked.headers["expect"] == "100-continue" for asked in raw.asked)


async def test_the_first_call_to_an_address_may_have_run(fake_mcp: Fake, tmp_path: Path) -> None:
    """Whether it says when it takes one isn't known yet."""
    fake = fake_mcp("shared")
    async with raw_server(execute_tool=home((b"", False))) as raw, cluster(tmp_path, fake, count=1) as web:
        only = await execute(session_at(raw, web), "shared__say", {"word": "only"}, 1)
        assert "may have run" in only.last["error"]["message"]
        assert not fake.record.calls("say")
