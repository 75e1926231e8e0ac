"""Replicas: which ids and requests are refused, and what becomes of calls when a replica ends."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path

import pytest
from helpers.driver import PATIENCE, comes_true, ended, run, write_config
from helpers.raw_http_client import Json, Web, message
from helpers.replicas import KEY, OLD_KEY, OTHER_KEY, at, began, cluster, execute, people, start, text_of
from mcpzip_fakes.launch import FakeServer

from mcpzip.server.replicas.replica import Replica
from mcpzip.system.sealing import KeyRing, read_key

Fake = Callable[..., FakeServer]
posix = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")


# --- ids that are no sessions


@pytest.mark.parametrize("forged", ["x" * 200, "00" * 16, "a.b.c", "A" * 9_000])
async def test_a_forged_session_is_unknown(tmp_path: Path, forged: str) -> None:
    async with cluster(tmp_path, count=1) as web:
        session = await web.session()
        for id in (forged, session.id[:-1] + ("A" if session.id[-1] != "A" else "B"), session.id[1:]):
            session.headers["Mcp-Session-Id"] = id
            assert (await session.ask("POST", message("ping", id=1))).status == 404


async def test_the_session_of_another_person_is_unknown_at_every_replica(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    keys = people(tmp_path, "ann", "bob")
    http = {"public_url": "http://localhost/mcp", "api_keys": "keys.json"}
    async with cluster(tmp_path, fake_mcp("echo"), http=http) as web:
        web.headers["Authorization"] = f"Bearer {keys['ann']}"
        session = await web.session()
        for replica in web.replicas:
            mine = at(session, replica)
            assert text_of(await execute(mine, "echo__greet", {"name": "Ada"})).startswith("Hello, Ada!")
            others = at(session, replica)
            others.headers["Authorization"] = f"Bearer {keys['bob']}"
            for verb, body in (("POST", message("ping", id=1)), ("GET", None), ("DELETE", None)):
                assert (await others.ask(verb, body)).status == 404
            del others.headers["Authorization"]
            assert (await others.ask("POST", message("ping", id=1))).status == 401
        assert (await at(session, web.replicas[1]).ask("POST", message("ping", id=1))).status == 200


async def test_keys_are_rotated_without_losing_a_session(fake_mcp: Fake, tmp_path: Path) -> None:
    steps = [(OLD_KEY,), (OLD_KEY, KEY), (KEY, OLD_KEY), (KEY,)]
    fake, sessions = fake_mcp("echo"), []
    for keys in steps:
        async with cluster(tmp_path, fake, count=1, keys=keys) as web:
            for one in sessions:
                status = (await at(one, web).ask("POST", message("ping", id=1))).status
                sealed_by = OLD_KEY if sessions.index(one) < 2 else KEY
                assert status == (200 if sealed_by in keys else 404)
            sessions.append(await web.session())
    async with cluster(tmp_path, fake, count=1, keys=(OTHER_KEY,)) as web:
        for one in sessions:
            assert (await at(one, web).ask("POST", message("ping", id=1))).status == 404


# --- the private address


async def test_the_private_address_lets_in_replicas_only(tmp_path: Path) -> None:
    async with cluster(tmp_path) as web:
        session = await web.session()
        host, _, port = web.replicas[0].private.partition(":")
        private = at(session, Web(int(port), host))
        for token in (None, "x" * 80, session.id):
            for verb, body in (("POST", message("ping", id=1)), ("GET", None), ("DELETE", None)):
                reply = await private.ask(verb, body, Mcpzip_Forwarded=token)
                assert (reply.status, "result" in reply.body.decode()) == (403, False)
        assert (await private.ask("GET", None, "/health")).status == 403


async def test_a_forwarded_request_is_taken_once_and_with_its_body_only(tmp_path: Path) -> None:
    async with cluster(tmp_path, count=1) as web:
        session = await web.session()
        address = web.replicas[0].private
        host, _, port = address.partition(":")
        private = at(session, Web(int(port), host))
        made = Replica(KeyRing([read_key(KEY)]), "10.0.0.7:1")
        ping, other = message("ping", id=1), message("ping", id=2)

        def token(to: str = address, method: str = "POST") -> str:
            return made.seal_forward(to, method, ping, None, "")

        good = token()
        assert (await private.ask("POST", ping, Mcpzip_Forwarded=good)).last["result"] == {}
        assert (await private.ask("POST", ping, Mcpzip_Forwarded=good)).status == 403
        assert (await private.ask("POST", other, Mcpzip_Forwarded=token())).status == 403
        assert (await private.ask("POST", ping, Mcpzip_Forwarded=token("10.0.0.7:1"))).status == 403
        assert (await private.ask("POST", ping, Mcpzip_Forwarded=token(method="GET"))).status == 403
        assert (await private.ask("POST", ping, Mcpzip_Forwarded=token())).status == 200


async def test_without_a_private_address_every_replica_begins_a_session_again(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    async with cluster(tmp_path, fake_mcp("echo"), replicas={"listen": None}) as web:
        session = await web.session()
        for number in range(4):
            assert "Hello, Ada!" in text_of(await execute(session, "echo__greet", {"name": "Ada"}, number))
        assert [replica.said().count("replicas ") for replica in web.replicas] == [0, 0]
        for replica in web.replicas:  # each has a part of the session
            assert (await at(session, replica).ask("DELETE")).status == 200
            assert (await at(session, replica).ask("POST", message("ping", id=1))).status == 404


async def test_replicas_that_do_not_understand_each_other_serve_on_their_own(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    """As if the key had been rotated in one step."""
    fake = fake_mcp("echo")
    async with AsyncExitStack() as stack:
        replicas = []
        for number, keys in enumerate(([KEY], [OTHER_KEY, KEY])):
            folder = tmp_path / str(number)
            folder.mkdir()
            config = write_config(folder, fake, replicas={"keys": keys, "listen": "127.0.0.1:0"})
            process = start(config, folder / "stderr.log")
            stack.enter_context(ended(process))
            replicas.append(await began(process, folder / "stderr.log"))
        session = await replicas[0].session()
        for replica in replicas:
            reply = await execute(at(session, replica), "echo__greet", {"name": "Ada"})
            assert "Hello, Ada!" in text_of(reply)


# --- replicas that end


@posix
@pytest.mark.parametrize("through", [0, 1])
async def test_a_replica_that_is_killed_during_a_call_leaves_an_error_and_the_session(
    fake_mcp: Fake, tmp_path: Path, through: int
) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake) as web:
        session = await web.session()
        home, other = web.replicas
        arguments = {"name": "shared__wait", "arguments": {"word": "never"}}
        async with at(session, web.replicas[through]).calling("execute_tool", 2, arguments=arguments) as call:
            await comes_true(lambda: fake.record.calls("wait"))
            home.process.send_signal(signal.SIGKILL)
            home.process.wait(PATIENCE)
            if through == 0:
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await call.reply()
            else:
                assert "may have run" in (await call.reply()).last["error"]["message"]
        assert text_of(await execute(session, "shared__say", {"word": "on"}, 3)) == "on"
        assert (await at(session, other).ask("DELETE")).status == 200
        assert (await at(session, other).ask("POST", message("ping", id=1))).status == 404
        assert len(fake.record.calls("wait")) == 1


@posix
async def test_a_call_that_has_begun_its_stream_ends_with_an_error_if_its_replica_is_killed(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake) as web:
        session = await web.session(capabilities={"elicitation": {}})
        arguments = {"name": "shared__form", "arguments": {"word": "who"}}
        async with at(session, web.replicas[1]).calling("execute_tool", 2, arguments=arguments) as call:
            await call.head()
            question = await call.event()
            web.replicas[0].process.send_signal(signal.SIGKILL)
            last = await call.event()
            assert last["id"] == 2
            assert "may have run" in last["error"]["message"]
            assert await call.event() == {}
        await at(session, web.replicas[1]).reply_to(question, b'{"action":"decline"}')
        assert len(fake.record.calls("form")) == 1


async def test_a_broken_stream_of_a_replica_that_has_ended_is_not_mistaken_for_another(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake) as web:
        session = await web.session()

        async def broken(word: str, number: int, replica: Web) -> str:
            """The id of the first event of a call whose stream the client has left."""
            held = {"name": "shared__wait", "arguments": {"word": word}}
            async with at(session, replica).calling("execute_tool", number, arguments=held) as call:
                await call.head()
                return (await call.piece()).decode().split("id: ")[1].split("\r\n")[0]

        before = await broken("before", 2, web.replicas[0])
        web.replicas[0].process.kill()
        web.replicas[0].process.wait(PATIENCE)
        after = await broken("after", 3, web.replicas[1])
        assert (await session.ask("GET", Last_Event_Id=before)).status == 400
        fake.release("wait", word="after")
        reply = await session.ask("GET", Last_Event_Id=after)
        assert text_of(reply) == "after"


@posix
async def test_nothing_runs_twice_while_replicas_are_killed(fake_mcp: Fake, tmp_path: Path) -> None:
    """Every call has its own word. Clients don't repeat what failed, so a word is said once or not at all."""
    fake, said, failed = fake_mcp("shared"), set[str](), set[str]()
    async with cluster(tmp_path, fake, count=4) as web:
        done = asyncio.Event()

        async def converse(client: int) -> None:
            session = await web.session() if client % 2 else None
            for number in count():
                if done.is_set():
                    return
                word = f"{client}-{number}"
                called = {"name": "shared__say", "arguments": {"word": word}}
                params = {"name": "execute_tool", "arguments": called}
                try:
                    if session is None:
                        reply = await web.modern("tools/call", params, number)
                    else:
                        reply = await session.ask("POST", message("tools/call", params, number))
                except (OSError, ValueError, asyncio.IncompleteReadError):
                    failed.add(word)  # its replica was killed while it answered
                    continue
                if "result" in reply.last:
                    assert text_of(reply) == word
                    said.add(word)
                else:
                    assert "may have run" in reply.last["error"]["message"]
                    failed.add(word)

        async def kill() -> None:
            for replica in web.replicas[:3]:
                before = len(said)
                await comes_true(lambda before=before: len(said) >= before + 40)
                replica.process.kill()
                replica.process.wait(PATIENCE)
            before = len(said)
            await comes_true(lambda: len(said) >= before + 40)
            done.set()

        await asyncio.gather(kill(), *map(converse, range(6)))
    words = [one["word"] for one in arguments_of(fake, "say")]
    assert len(words) == len(set(words))
    assert said <= set(words) <= said | failed
    assert len(failed) <= 3 * 6  # each kill ends the one call that each client is making


def arguments_of(fake: FakeServer, tool: str) -> list[Json]:
    return [dict(one.get("arguments", one)) for one in fake.record.calls(tool)]


async def test_a_rebuilt_session_knows_its_client(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake, count=3) as web:
        session = await web.session(capabilities={"elicitation": {}}, protocolVersion="2025-06-18")
        web.replicas[0].process.kill()
        web.replicas[0].process.wait(PATIENCE)
        arguments = {"name": "shared__form", "arguments": {"word": "who"}}
        for number in range(4):
            async with session.calling("execute_tool", number, arguments=arguments) as call:
                await call.head()
                question = await call.event()
                assert question["method"] == "elicitation/create"
                answer = {"action": "accept", "content": {"name": "Ada"}}
                body = {"jsonrpc": "2.0", "id": question["id"], "result": answer}
                assert (await session.ask("POST", json.dumps(body).encode())).status == 202
                assert (await call.event())["result"]["content"][0]["text"] == "who: Ada"
        assert len({*web.served} - {0}) == 2


@posix
async def test_a_replica_that_is_told_to_end_finishes_its_calls(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake) as web:
        session = await web.session(capabilities={"elicitation": {}})
        home, other = web.replicas
        held = {"name": "shared__wait", "arguments": {"word": "late"}}
        form = {"name": "shared__form", "arguments": {"word": "who"}}
        async with AsyncExitStack() as calls:
            # The first one, because of several calls a server doesn't say in which it asks.
            asking = await calls.enter_async_context(
                at(session, other).calling("execute_tool", 4, arguments=form)
            )
            await asking.head()
            question = await asking.event()
            direct, forwarded = [
                await calls.enter_async_context(
                    at(session, replica).calling("execute_tool", number, arguments=held)
                )
                for number, replica in ((2, home), (3, other))
            ]
            await comes_true(lambda: len(fake.record.calls("wait")) == 2)
            home.process.send_signal(signal.SIGTERM)
            await comes_true(lambda: refuses(home))
            # What is new goes on at another replica, while what is under way ends where it is.
            assert text_of(await execute(session, "shared__say", {"word": "new"}, 5)) == "new"
            await session.reply_to(question, b'{"action":"accept","content":{"name":"Ada"}}')
            assert (await asking.event())["result"]["content"][0]["text"] == "who: Ada"
            assert home.process.poll() is None
            fake.release("wait")
            for call in (direct, forwarded):
                assert text_of(await call.reply()) == "late"
        assert home.process.wait(PATIENCE) == 0
        assert text_of(await execute(session, "shared__say", {"word": "on"}, 6)) == "on"


@posix
async def test_a_drain_has_an_end(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake, count=1, replicas={"drain_seconds": 0.6}) as web:
        session = await web.session()
        held = {"name": "shared__wait", "arguments": {"word": "late"}}
        async with session.calling("execute_tool", 2, arguments=held) as call, session.listening() as stream:
            await comes_true(lambda: fake.record.calls("wait"))
            web.replicas[0].process.send_signal(signal.SIGTERM)
            assert "told to stop" in (await call.reply()).last["error"]["message"]
            while await stream.event():
                pass
        assert web.replicas[0].process.wait(PATIENCE) == 0


def refuses(web: Web) -> bool:
    """Whether it takes no connection any more."""
    try:
        socket.create_connection((web.host, web.port)).close()
        return False
    except OSError:
        return True


# --- configs


def test_what_keeps_a_replica_from_starting(tmp_path: Path) -> None:
    for settings, why in [
        ({"keys": [KEY], "listen": "0.0.0.0:0"}, '"address"'),
        ({"keys": [KEY], "listen": "127.0.0.1:0", "address": "a:b"}, "'a:b' is no address"),
        ({"keys": ["c2hvcnQ="]}, "5 bytes"),
    ]:
        config = write_config(tmp_path, replicas=settings)
        done = run("serve", "--http", "0", "--config", str(config))
        assert done.returncode == 2
        assert why in done.stderr.decode()
        assert "Traceback" not in done.stderr.decode()
