"""The stdio fake, byte by byte: each fault once, and what it leaves behind."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from typing import Any

import pytest
from helpers.fake_stdio_client import DEADLINE, Start, one_tool, talk
from mcpzip_fakes.faults import fault

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


async def test_a_raw_result_and_a_raw_definition_go_out_byte_for_byte(fake_mcp: Start) -> None:
    definition = '{"name":"x" , "inputSchema":{"type":"object"},"n":1.0,"name2":"\\u00e9"}'
    result = '{"content": [],  "big":12345678901234567890,"exp":1e3}'
    server = fake_mcp(tools=[{"raw": definition, "result": {"raw": result}}])
    async with talk(server) as client:
        await client.initialize()
        assert definition.encode() in await client.ask(1, "tools/list").line()
        assert (
            await client.call("two", "x").line()
            == b'{"jsonrpc":"2.0","id":"two","result":%s}\n' % result.encode()
        )


async def test_echo_keeps_the_spelling_of_the_arguments(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp)) as client:
        await client.initialize()
        client.say(
            '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{ "n":1.0 },"name":"echo"}}'
        )
        assert (await client.hear())["result"]["content"][0]["text"] == '{ "n":1.0 }'


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ],
)
async def test_the_version_is_negotiated(fake_mcp: Start, asked: str, given: str) -> None:
    async with talk(one_tool(fake_mcp)) as client:
        assert (await client.initialize(asked))["protocolVersion"] == given


async def test_versions_can_be_narrowed(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp, versions=["2024-11-05"], era="legacy")) as client:
        assert (await client.initialize("2025-11-25"))["protocolVersion"] == "2024-11-05"


async def test_the_first_request_decides_the_era(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp)) as client:
        found = (await client.modern(1, "server/discover").hear())["result"]
        assert found["supportedVersions"] == ["2026-07-28"]
        assert (found["resultType"], found["ttlMs"], found["cacheScope"]) == ("complete", 0, "private")
        refused = await client.ask(2, "initialize", protocolVersion="2025-11-25", capabilities={}).hear()
        assert refused["error"]["code"] == -32022
        assert (await client.ask(3, "tools/list").hear())["error"]["code"] == -32602
        assert (await client.modern(4, "ping").hear())["error"]["code"] == -32601
    async with talk(one_tool(fake_mcp)) as client:
        await client.initialize()
        assert (await client.modern(1, "tools/list").hear())["error"]["code"] == -32600
        assert (await client.ask(2, "server/discover").hear())["error"]["code"] == -32601
        assert (await client.ask(3, "ping").hear())["result"] == {}


async def test_a_modern_request_of_an_unknown_version(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp)) as client:
        error = (await client.modern(1, "tools/list", version="2099-01-01").hear())["error"]
        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
        assert (await client.modern(2, "tools/list", version=7).hear())["error"]["code"] == -32602
        await client.initialize()  # it has decided nothing


async def test_legacy_asks_for_a_handshake_first(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp, era="legacy")) as client:
        assert (await client.ask(1, "ping").hear())["result"] == {}
        assert (await client.ask(2, "tools/list").hear())["error"]["code"] == -32602
        assert (await client.modern(3, "server/discover").hear())["error"]["code"] == -32601


async def test_a_modern_only_server_refuses_initialize(fake_mcp: Start) -> None:
    async with talk(fake_mcp("modern-only")) as client:
        error = (await client.ask(1, "initialize", protocolVersion="2025-11-25").hear())["error"]
        assert (error["code"], error["data"]["supported"]) == (-32022, ["2026-07-28"])


async def test_what_is_no_message_is_answered_as_json_rpc_says(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp)) as client:
        answer = await client.say("{nonsense").hear()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)


async def test_cancelled_calls_are_not_answered(fake_mcp: Start) -> None:
    server = fake_mcp(tools=["echo", {"name": "wait", "result": {"delay": 600}}])
    async with talk(server) as client:
        await client.initialize()
        client.call(1, "wait").say(
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        )
        assert (await client.call(2, "echo").hear())["id"] == 2
        [ended] = await server.record.until(lambda seen: seen.events("cancelled"))
        assert ended.detail == {"method": "tools/call", "id": 1, "name": "wait"}
        assert await client.rest() == b""


async def test_a_client_that_writes_much_before_it_reads(fake_mcp: Start) -> None:
    """Neither side may wait for the other: the requests and the answers are each more than a pipe holds."""
    server = fake_mcp(tools=[{"name": "big", "result": {"size": 100_000}}])
    async with talk(server) as client:
        await client.initialize()
        for number in range(40):
            client.call(number + 1, "big", padding="x" * 20_000)
            await client.process.stdin.drain()  # type: ignore[union-attr]
        answers = [await client.hear() for _ in range(40)]
    assert [answer["id"] for answer in answers] == list(range(1, 41))
    assert {len(answer["result"]["content"][0]["text"]) for answer in answers} == {100_000}


async def test_what_is_written_is_read_to_its_end_after_eof(fake_mcp: Start) -> None:
    async with talk(fake_mcp(tools=[{"name": "big", "result": {"size": 3_000_000}}])) as client:
        await client.initialize()
        await client.call(1, "big").line()
        client.call(2, "big")
        client.call(3, "big")
        await client.line()
        rest = await client.rest()
        assert len(rest) > 3_000_000
        assert await client.ended() == 0


async def test_stdin_may_be_a_file(fake_mcp: Start, tmp_path: Any) -> None:
    said = tmp_path / "said"
    said.write_text('{"jsonrpc":"2.0","id":1,"method":"ping"}')
    server = one_tool(fake_mcp)
    with said.open("rb") as stdin:
        process = await asyncio.create_subprocess_exec(
            *server.command, stdin=stdin, stdout=asyncio.subprocess.PIPE, env={**os.environ, **server.env}
        )
        out, _ = await process.communicate()
    assert json.loads(out) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_the_record_has_messages_start_and_end(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, record_env=["TOKEN"])
    server.env["TOKEN"] = "s3cret"
    async with talk(server) as client:
        await client.initialize()
        await client.call(1, "echo").line()
        await client.rest()
        assert await client.ended() == 0
    what = [(line.what, line.method) for line in server.record.lines()]
    assert what == [
        ("start", ""),
        ("in", "initialize"),
        ("out", ""),
        ("in", "notifications/initialized"),
        ("in", "tools/call"),
        ("out", ""),
        ("exit", ""),
    ]
    start = server.record.events("start")[0].detail
    assert start["env"] == {"TOKEN": "s3cret"}
    assert "PATH" in start["env_names"]  # type: ignore[operator]
    assert "s3cret" not in str(start["env_names"])
    assert {line.pid for line in server.record.lines()} == {client.process.pid}
    assert server.record.events("exit")[0].detail == {"reason": "end of input", "code": 0}


# Each fault once


async def test_slow_start(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("slow-start", seconds=0.2))
    async with talk(server) as client:
        await client.initialize()
    times = [line.time for line in server.record.lines()]
    assert times[1] - times[0] >= 0.2  # it slept between its start and the first message


async def test_silence(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("silence", tool="echo"))
    async with talk(server) as client:
        await client.initialize()
        client.call(1, "echo")
        assert (await client.ask(2, "ping").hear())["id"] == 2
        assert await client.rest() == b""
    assert len(server.record.calls("echo")) == 1


async def test_exit_at_once(fake_mcp: Start) -> None:
    async with talk(fake_mcp("exit-at-once")) as client:
        assert await client.ended() == 3
        assert client.process.stderr
        assert await client.process.stderr.read() == b"error: FAKE_API_TOKEN is not set\n"


async def test_stderr(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp, fault("stderr", text="watch out", count=3))) as client:
        await client.initialize()
        assert client.process.stderr
        assert await client.process.stderr.readexactly(30) == b"watch out\n" * 3


async def test_a_banner_comes_first(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp, fault("banner", text="Hello\nthere"))) as client:
        client.ask(1, "ping")
        assert [await client.line() for _ in range(3)] == [
            b"Hello\n", b"there\n", b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
        ]  # fmt: skip


@pytest.mark.parametrize("when", ["before", "middle", "after"])
async def test_crash(fake_mcp: Start, when: str) -> None:
    server = one_tool(fake_mcp, fault("crash", tool="echo", nth=2, when=when, code=70, text="panic"))
    whole = b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{}"}]}}\n'
    async with talk(server) as client:
        await client.initialize()
        assert (await client.call(1, "echo").hear())["id"] == 1
        got = await client.call(2, "echo").line()
        assert got == {"before": b"", "middle": whole[: len(whole) // 2], "after": whole}[when]
        assert await client.ended() == 70
        assert client.process.stderr
        assert await client.process.stderr.read() == b"panic\n"
    assert server.record.events("exit")[0].detail == {"reason": "crash", "code": 70}


async def test_a_crash_of_the_first_run_only(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("crash", run=1))
    for expected in (b"", b'{"jsonrpc":"2.0","id":1,'):
        async with talk(server) as client:
            await client.initialize()
            assert (await client.call(1, "echo").line())[:24] == expected
    assert len(server.record.events("start")) == 2
    assert len(server.record.calls("echo")) == 2


async def test_junk_and_bytes_that_are_not_utf8(fake_mcp: Start) -> None:
    async with talk(one_tool(fake_mcp, fault("junk", text="log", method="ping"), "invalid-utf8")) as client:
        client.ask(1, "ping")
        lines = [await client.line() for _ in range(3)]
        assert lines[2] == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
        assert b"log\n" in lines
        [odd] = [line for line in lines[:2] if line != b"log\n"]
        with pytest.raises(UnicodeDecodeError):
            odd.decode()


async def test_wrong_id_and_duplicate(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("wrong-id", nth=1), fault("duplicate", nth=2))
    async with talk(server) as client:
        await client.initialize()
        assert (await client.call(1, "echo").hear())["id"] == "nobody-asked-7f3a"
        client.call(2, "echo")
        assert [(await client.hear())["id"] for _ in range(2)] == [2, 2]


async def test_torn(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("torn", method="ping", count=5, seconds=0.001))
    async with talk(server) as client:
        assert (await client.ask(1, "ping").hear())["id"] == 1
    assert len(server.record.sent()) == 5


async def test_an_error_for_a_list_and_for_the_handshake(fake_mcp: Start) -> None:
    async with talk(fake_mcp("errors")) as client:
        await client.initialize()
        error = (await client.ask(1, "tools/list").hear())["error"]
        assert error == {"code": -32603, "message": "the database is away", "data": {"retryAfter": 30}}
    async with talk(
        one_tool(fake_mcp, fault("error", method="initialize", code=-32000, message="no"))
    ) as client:
        assert (await client.ask(1, "initialize").hear())["error"] == {"code": -32000, "message": "no"}


async def test_a_loop_of_cursors(fake_mcp: Start) -> None:
    server = fake_mcp(generate={"count": 5}, page_size=2, faults=["cursor-loop"])
    async with talk(server) as client:
        await client.initialize()
        cursors: list[object] = []
        params: dict[str, object] = {}
        for number in range(5):
            page = (await client.ask(number + 1, "tools/list", **params).hear())["result"]
            cursors.append(page["nextCursor"])
            params = {"cursor": page["nextCursor"]}
    assert cursors == ["page-2", "page-3", "page-2", "page-3", "page-2"]


async def test_a_storm_of_changes_and_a_silent_one(fake_mcp: Start) -> None:
    changed = [{"name": "echo", "description": "Now it says something else."}]
    for count in (3, 0):
        server = one_tool(fake_mcp, fault("list-changed", count=count), changed_tools=changed)
        async with talk(server) as client:
            await client.initialize()
            await client.call(1, "echo").line()
            told = [(await client.hear())["method"] for _ in range(count)]
            assert told == ["notifications/tools/list_changed"] * count
            [tool] = (await client.ask(2, "tools/list").hear())["result"]["tools"]
            assert tool["description"] == "Now it says something else."


@POSIX
def test_a_grandchild_can_keep_the_pipe_open(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp, fault("fork", hold_output=True))
    environment = {**os.environ, **server.env}
    with subprocess.Popen(server.command, stdin=-1, stdout=-1, env=environment) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        assert process.wait(DEADLINE) == 0
        assert select.select([process.stdout], [], [], 0.1)[0] == []  # gone, and no end of its output
        server.stop()
        assert process.stdout.read() == b""


async def test_dies_on_discover(fake_mcp: Start) -> None:
    server = fake_mcp("dies-on-discover")
    async with talk(server) as client:
        assert await client.modern(1, "server/discover").line() == b""
        assert await client.ended() == 1
    async with talk(server) as client:
        await client.initialize()
        assert (await client.ask(2, "tools/list").hear())["id"] == 2


async def test_silent_on_discover(fake_mcp: Start) -> None:
    async with talk(fake_mcp("silent-on-discover")) as client:
        client.modern(1, "server/discover")
        assert (await client.initialize())["protocolVersion"] == "2025-06-18"


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
async def test_a_signal_ends_it_and_is_recorded(fake_mcp: Start, name: str) -> None:
    server = one_tool(fake_mcp)
    number = signal.Signals[name]
    async with talk(server) as client:
        await client.initialize()
        client.process.send_signal(number)
        assert await client.ended() == 128 + number
        assert client.process.stderr
        assert await client.process.stderr.read() == b""
    assert server.record.events("exit")[0].detail == {"reason": name, "code": 128 + number}


@POSIX
async def test_ignores_eof_and_sigterm(fake_mcp: Start) -> None:
    server = fake_mcp("ignores-eof")
    async with talk(server) as client:
        await client.initialize()
        client.process.terminate()
        assert (await client.ask(1, "ping").hear())["id"] == 1
        assert client.process.stdin
        client.process.stdin.close()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.process.wait()
        server.stop()  # what the fixture does at the end of a test
        assert await client.ended() == -signal.SIGKILL


@POSIX
async def test_a_grandchild_outlives_it_until_the_fixture_ends_it(fake_mcp: Start) -> None:
    server = fake_mcp("forks")
    async with talk(server) as client:
        await client.initialize()
        [line] = server.record.events("grandchild")
        child = line.detail["child"]
        assert isinstance(child, int)
        await client.rest()
        assert await client.ended() == 0
    os.kill(child, signal.SIGTERM)
    os.kill(child, signal.SIGHUP)
    os.kill(child, 0)
    server.stop()
    await server.record.until(lambda seen: not _alive(child))


def _alive(pid: int) -> bool:
    """Whether ``pid`` runs; an orphan nobody has reaped yet doesn't."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return True  # no /proc here: it is listed until init reaps it
    except ProcessLookupError:
        return False


async def test_start_needs_neither_the_sdk_nor_what_prints(fake_mcp: Start) -> None:
    server = one_tool(fake_mcp)
    code = (
        "import sys, mcpzip_fakes.stdio_server\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'click', 'rich', 'starlette', 'argparse', 'tomllib'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={**os.environ, **server.env}
    )
    out, _ = await process.communicate()
    assert out.strip() == b"[]"
