"""Replicas behind a balancer that sends each request to the next of them, without affinity and without a
store: whatever a client may do with one process it may do with several.

Each replica is a process; each request goes to another one than the request before it.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_types as t
import pytest
from helpers.driver import PATIENCE, comes_true
from helpers.raw_http_client import Json, Web, message, modern_message
from helpers.replicas import at, cluster, execute, people, text_of
from mcp import Client
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]
posix = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")


@pytest.mark.parametrize("count", [2, 4])
async def test_the_sdk_client_is_served_in_every_mode(fake_mcp: Fake, tmp_path: Path, count: int) -> None:
    told = [{"progress": step, "total": 5, "message": f"step {step}"} for step in range(1, 6)]
    build = {"name": "build", "result": {"text": "built", "progress": told}}
    fakes = [fake_mcp("echo"), fake_mcp("questions"), fake_mcp(name="ci", tools=[build])]

    async def sampled(context: object, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        text = t.TextContent(type="text", text="All well.")
        return t.CreateMessageResult(role="assistant", content=text, model="none")

    async with cluster(tmp_path, *fakes, count=count) as web:
        for mode in ["legacy", "auto", "2026-07-28"]:
            heard: list[Any] = []

            async def hear(*progress: Any, heard: list[Any] = heard) -> None:
                heard.append(progress)

            async with (
                asyncio.timeout(PATIENCE),
                Client(web.url, mode=mode, sampling_callback=sampled) as client,
            ):
                tools = (await client.list_tools()).tools
                assert [tool.name for tool in tools] == ["search_tools", "describe_tool", "execute_tool"]

                async def text(tool: str, client: Client = client, **arguments: Any) -> str:
                    result = await client.call_tool(tool, arguments, progress_callback=hear)
                    return str(result.content[0].text)

                for _ in range(count):
                    assert "echo__greet" in await text("search_tools", query="greet somebody")
                    said = await text("execute_tool", name="echo__greet", arguments={"name": "Ada"})
                    assert "Hello, Ada!" in said
                    assert "All well." in await text("execute_tool", name="questions__summarize")
                heard.clear()
                assert await text("execute_tool", name="ci__build") == "built"
                await comes_true(lambda heard=heard: len(heard) == 5)
        assert set(web.served) == set(range(count))


# --- sessions


async def test_a_session_is_used_at_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    async with cluster(tmp_path, fake_mcp("shared")) as web:
        session = await web.session()
        ids = set()
        for number in range(1, 5):
            reply = await execute(session, "shared__say", {"word": f"w{number}"}, number)
            assert text_of(reply) == f"w{number}"
            ids.add(reply.headers["mcp-session-id"])
        assert ids == {session.id}
        assert len(session.id) < 1_000
        await asyncio.gather(*(execute(session, "shared__say", {"word": "x"}, n) for n in range(10, 20)))


async def test_what_a_session_is_told_comes_on_its_stream_wherever_that_is(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    async with cluster(tmp_path, fake_mcp("shared"), expose="direct") as web:
        session = await web.session()
        home, other = web.replicas
        for replica, one, grown in ((home, other, True), (other, home, False)):
            async with at(session, replica).listening_again() as stream:
                assert (await at(session, one).ask("GET")).status == 409
                reply = await at(session, one).call("shared__grow", 3, arguments={})
                assert text_of(reply) == "changed"
                listed = not grown
                while listed is not grown:  # the list may have changed before, when it was read first
                    while (await stream.event())["method"] != "notifications/tools/list_changed":
                        pass
                    tools = (await at(session, one).ask("POST", message("tools/list", id=4))).body
                    listed = b"shared__grown" in tools


async def test_an_answer_to_a_question_reaches_the_replica_that_asked(fake_mcp: Fake, tmp_path: Path) -> None:
    async with cluster(tmp_path, fake_mcp("shared")) as web:
        session = await web.session(capabilities={"elicitation": {}})
        for asked_at, answered_at in [(0, 1), (1, 0), (1, 1)]:
            asking, answering = (at(session, web.replicas[number]) for number in (asked_at, answered_at))
            arguments = {"name": "shared__form", "arguments": {"word": "who"}}
            async with asking.calling("execute_tool", 2, arguments=arguments) as call:
                await call.head()
                question = await call.event()
                assert question["method"] == "elicitation/create"
                await answering.reply_to(question, b'{"action":"accept","content":{"name":"Ada"}}')
                assert (await call.event())["result"]["content"][0]["text"] == "who: Ada"


async def test_a_call_is_cancelled_from_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake) as web:
        session = await web.session()
        for number, replica in enumerate(web.replicas, 5):
            arguments = {"name": "shared__wait", "arguments": {"word": f"{number}"}}
            async with session.calling("execute_tool", number, arguments=arguments) as call:
                await comes_true(lambda n=number: len(fake.record.calls("wait")) == n - 4)
                cancelled = message("notifications/cancelled", {"requestId": number})
                assert (await at(session, replica).ask("POST", cancelled)).status == 202
                assert "cancelled" in (await call.reply()).last["error"]["message"]
        await comes_true(lambda: len(fake.record.received("notifications/cancelled")) == 2)


async def test_a_session_that_was_ended_is_gone_everywhere(fake_mcp: Fake, tmp_path: Path) -> None:
    async with cluster(tmp_path, fake_mcp("echo")) as web:
        for ending in web.replicas:
            session = await web.session()
            assert (await at(session, ending).ask("DELETE")).status == 200
            for replica in web.replicas:
                assert (await at(session, replica).ask("POST", message("ping", id=1))).status == 404


async def test_a_kept_result_is_read_at_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    large: Json = {"name": "large", "result": {"size": 300_000}}
    async with cluster(tmp_path, fake_mcp(name="ci", tools=[large])) as web:
        session = await web.session()
        handle = text_of(await execute(session, "ci__large")).split(":")[0].removeprefix("Kept as ")
        for replica in web.replicas:
            assert len(text_of(await execute(at(session, replica), handle, id=3))) == 300_000


async def test_a_broken_stream_is_resumed_at_another_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared")
    async with cluster(tmp_path, fake) as web:
        session = await web.session()
        home, other = web.replicas
        arguments = {"name": "shared__wait", "arguments": {"word": "resumed"}}
        async with at(session, other).calling("execute_tool", 2, arguments=arguments) as call:
            await call.head()
            first = (await call.piece()).decode()
            event_id = first.split("id: ")[1].split("\r\n")[0]
        for replica in (other, home):
            again = at(session, replica)
            async with again.connected() as stream:
                await stream.write(again.request("GET", Last_Event_Id=event_id))
                assert (await stream.head()).status == 200
                if replica is home:
                    fake.release("wait", word="resumed")
                    assert (await stream.event())["result"]["content"][0]["text"] == "resumed"


# --- modern clients


ASKED: Json = {"elicitation": {}}
FORM: Json = {"name": "execute_tool", "arguments": {"name": "shared__form", "arguments": {"word": "who"}}}
YES: Json = {"action": "accept", "content": {"name": "Ada"}}


async def asked(web: Web, params: Json, **headers: str) -> Json:
    """A modern request of a client that can be asked: the result, or the error."""
    stamp = {"_meta": {"io.modelcontextprotocol/clientCapabilities": ASKED}}
    reply = await web.modern("tools/call", {**params, **stamp}, **headers)
    return reply.last.get("result") or reply.last["error"]


def answered(params: Json, result: Json) -> Json:
    """The request made again, with an answer to what was asked."""
    responses = dict.fromkeys(result["inputRequests"], YES)
    return {**params, "requestState": result["requestState"], "inputResponses": responses}


async def test_a_parked_call_is_resumed_at_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared", era="legacy")
    async with cluster(tmp_path, fake) as web:
        for asked_at, resumed_at in [(0, 1), (1, 0), (1, 1)]:
            question = await asked(web.replicas[asked_at], FORM)
            assert question["resultType"] == "input_required"
            resumed = await asked(web.replicas[resumed_at], answered(FORM, question))
            assert resumed["content"][0]["text"] == "who: Ada"
            again = await asked(web.replicas[resumed_at], answered(FORM, question))
            assert "no call that waits" in again["message"]
        assert len(fake.record.calls("form")) == 3


async def test_a_state_is_good_for_its_request_only(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared", era="legacy")
    async with cluster(tmp_path, fake) as web:
        question = await asked(web, FORM)
        state = question["requestState"]
        other: Json = {
            "name": "execute_tool",
            "arguments": {"name": "shared__form", "arguments": {"word": "x"}},
        }
        for params, used in [(other, state), (FORM, state.swapcase()), (FORM, "mcpzip-x"), (FORM, "")]:
            for replica in web.replicas:
                error = await asked(replica, {**answered(params, question), "requestState": used})
                assert "none of mcpzip" in error["message"]
        assert (await asked(web, answered(FORM, question)))["content"][0]["text"] == "who: Ada"
        assert len(fake.record.calls("form")) == 1


async def test_what_waits_for_a_person_is_no_others(fake_mcp: Fake, tmp_path: Path) -> None:
    keys = people(tmp_path, "ann", "bob")
    http = {"public_url": "http://localhost/mcp", "api_keys": "keys.json"}
    large: Json = {"name": "large", "result": {"size": 300_000}}
    fakes = fake_mcp("shared", era="legacy"), fake_mcp(name="ci", tools=[large])
    async with cluster(tmp_path, *fakes, http=http) as web:
        ann, bob = ({"Authorization": f"Bearer {keys[name]}"} for name in ("ann", "bob"))
        question = await asked(web, FORM, **ann)
        kept = await asked(web, {"name": "execute_tool", "arguments": {"name": "ci__large"}}, **ann)
        handle = kept["content"][0]["text"].split(":")[0].removeprefix("Kept as ")
        read: Json = {"name": "execute_tool", "arguments": {"name": handle}}
        for replica in web.replicas:
            assert "none of mcpzip" in (await asked(replica, answered(FORM, question), **bob))["message"]
            assert "300,000" not in str(refused := await asked(replica, read, **bob))
            assert len(str(refused)) < 2_000
        for replica in web.replicas:
            assert len((await asked(replica, read, **ann))["content"][0]["text"]) == 300_000
        assert (await asked(web, answered(FORM, question), **ann))["content"][0]["text"] == "who: Ada"


async def test_kept_results_of_modern_clients_are_read_at_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    large: Json = {"name": "large", "result": {"size": 300_000}}
    async with cluster(tmp_path, fake_mcp(name="ci", tools=[large])) as web:
        for replica in web.replicas:
            kept = await asked(replica, {"name": "execute_tool", "arguments": {"name": "ci__large"}})
            link = kept["content"][-1]
            handle = link["name"]
            assert len(handle) < 70
            read = {"name": "execute_tool", "arguments": {"name": handle}}
            for reader in web.replicas:
                assert len((await asked(reader, read))["content"][0]["text"]) == 300_000
                resource = await reader.modern("resources/read", {"uri": link["uri"]}, Mcp_Name=link["uri"])
                assert len(resource.last["result"]["contents"][0]["text"]) == 300_000
        web.replicas[1].process.kill()
        web.replicas[1].process.wait(PATIENCE)
        gone = await asked(web, read)
        assert gone["isError"]
        assert "call" in gone["content"][0]["text"].lower()


async def test_a_change_of_a_list_is_told_at_every_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    async with (
        cluster(tmp_path, fake_mcp("shared", transport="http"), expose="direct") as web,
        AsyncExitStack() as streams,
    ):
        wanted, headers = modern_message(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, 9
        )
        listeners = []
        for replica in web.replicas:
            assert (await replica.modern("tools/list")).last["result"]["tools"]
            listener = await streams.enter_async_context(replica.connected())
            await listener.write(replica.request("POST", wanted, **headers))
            assert (await listener.head()).status == 200
            assert (await listener.event())["method"] == "notifications/subscriptions/acknowledged"
            listeners.append(listener)
        grow: Json = {"name": "shared__grow", "arguments": {}}
        assert (await asked(web.replicas[0], grow))["content"][0]["text"] == "changed"
        for replica, listener in zip(web.replicas, listeners, strict=True):
            tools = b""
            while b"shared__grown" not in tools:
                while (await listener.event())["method"] != "notifications/tools/list_changed":
                    pass
                tools = (await replica.modern("tools/list")).body


async def test_a_paused_program_goes_on_at_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared", era="legacy")
    program: Json = {
        "name": "run_code",
        "arguments": {"code": 'first = shared__form(word="a")\nreturn first'},
    }
    async with cluster(tmp_path, fake, code={"allow": ["shared__*"]}) as web:
        question = await asked(web.replicas[0], program)
        assert question["resultType"] == "input_required", question
        done = await asked(web.replicas[1], answered(program, question))
        assert "a: Ada" in done["content"][0]["text"]


async def test_a_question_of_the_policy_is_answered_at_any_replica(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared")
    say: Json = {"name": "execute_tool", "arguments": {"name": "shared__say", "arguments": {"word": "w"}}}
    async with cluster(tmp_path, fake, policy="ask") as web:
        question = await asked(web.replicas[0], say)
        assert question["resultType"] == "input_required", question
        assert (await asked(web.replicas[1], answered(say, question)))["content"][0]["text"] == "w"
        assert len(fake.record.calls("say")) == 1
        question = await asked(web.replicas[0], say)
        web.replicas[0].process.kill()
        web.replicas[0].process.wait(PATIENCE)
        assert "Nothing ran" in (await asked(web, answered(say, question)))["message"]
        assert len(fake.record.calls("say")) == 1


async def test_the_replica_of_a_parked_call_is_killed(fake_mcp: Fake, tmp_path: Path) -> None:
    fake = fake_mcp("shared", era="legacy")
    async with cluster(tmp_path, fake) as web:
        question = await asked(web.replicas[0], FORM)
        web.replicas[0].process.kill()
        web.replicas[0].process.wait(PATIENCE)
        for _ in range(2):
            error = await asked(web, answered(FORM, question))
            assert "may have run" in error["message"]
        assert len(fake.record.calls("form")) == 1
