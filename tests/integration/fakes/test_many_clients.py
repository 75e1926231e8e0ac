"""Several clients at once: of a fake over stdio and over HTTP, and the example of the guide."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcpzip_fakes import Client, ConnectionEnded, ErrorAnswer, FakeServer, Identity, Pending
from mcpzip_fakes.pytest_plugin import many_clients as many_clients

Start = Callable[..., Pending[list[Client]]]
TRANSPORTS = ("stdio", "http")


def shared(fake_mcp: Callable[..., FakeServer], transport: str) -> FakeServer:
    return fake_mcp("shared", transport=transport)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_client_has_an_identity_of_its_own(
    fake_mcp: Callable[..., FakeServer], many_clients: Start, transport: str
) -> None:
    shop = shared(fake_mcp, transport)
    anna, ben = await many_clients(shop, [{"name": "anna", "roots": ["file:///a"]}, Identity(name="ben")])
    for client, declared in ((anna, {"roots": {"listChanged": True}}), (ben, {})):
        who = json.loads((await client.call("who", {"a": 1})).text)
        assert who["client"] == {"name": client.name, "version": "1"}
        assert who["capabilities"] == declared
        assert who["params"]["arguments"] == {"a": 1}
        assert who["initialized"] == (1 if transport == "stdio" else 2)
    pids = {line.pid for line in shop.record.received("tools/call")}
    assert len(pids) == (2 if transport == "stdio" else 1)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_with_all_that_belongs_to_it(
    fake_mcp: Callable[..., FakeServer], many_clients: Start, transport: str
) -> None:
    clients = await many_clients(shared(fake_mcp, transport), 3)
    said = await asyncio.gather(
        *(client.call("say", {"word": client.name}, id=7, progress_token="t") for client in clients)
    )
    for client, reply in zip(clients, said, strict=True):
        assert reply.text == client.name
        told = client.messages("notifications/progress")
        assert [(it["progressToken"], it["message"]) for it in told] == [("t", client.name)] * 2
        assert client.messages("notifications/x-shared/word") == [{"word": client.name}]
        assert [it["data"] for it in client.messages("notifications/message")] == [client.name]
        assert client.junk == []


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_calls_wait_until_they_are_released(
    fake_mcp: Callable[..., FakeServer], many_clients: Start, transport: str
) -> None:
    shop = shared(fake_mcp, transport)
    anna, ben = await many_clients(shop, 2)
    first, second = anna.call("wait", {"word": "a"}), ben.call("wait", {"word": "b"})
    await shop.record.until(lambda seen: len(seen.events("held")) == 2)
    shop.release("wait", word="b")
    assert (await second).text == "b"
    assert not first.done()
    shop.release("wait")
    assert (await first).text == "a"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_questions_are_answered_or_left_open(
    fake_mcp: Callable[..., FakeServer], many_clients: Start, transport: str
) -> None:
    form = {"action": "accept", "content": {"name": "Anna"}}
    shop = shared(fake_mcp, transport)
    anna, ben, cleo = await many_clients(
        shop,
        [
            {"elicitation": lambda asked: form if asked["message"] == "x" else None, "roots": ["file:///a"]},
            {"sampling": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Ben"}}},
            {},
        ],
    )
    assert (await anna.call("form", {"word": "x"})).text == "x: Anna"
    assert json.loads((await anna.call("where")).text) == {"roots": [{"uri": "file:///a"}]}
    assert json.loads((await ben.call("think")).text)["content"]["text"] == "Ben"
    assert (await cleo.call("think"))["isError"] is True

    later = anna.call("form", {"word": "y"})
    question = await anna.wait_for(lambda message: message.get("params", {}).get("message") == "y")
    anna.answer(question, {"action": "accept", "content": {"name": "late"}})
    assert (await later).text == "y: late"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_leaves_or_is_killed_in_the_middle_of_a_call(
    fake_mcp: Callable[..., FakeServer], many_clients: Start, transport: str
) -> None:
    shop = shared(fake_mcp, transport)
    anna, ben, cleo = await many_clients(shop, 3)
    calls = [client.call("wait", {"word": client.name}) for client in (anna, ben, cleo)]
    await shop.record.until(lambda seen: len(seen.events("held")) == 3)
    anna.kill()
    await ben.disconnect()
    for call in calls[:2]:
        with pytest.raises(ConnectionEnded):
            await call
    with pytest.raises(ConnectionEnded):
        await anna.call("who")
    shop.release("wait")
    assert (await calls[2]).text == cleo.name


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_errors_and_cancellation(
    fake_mcp: Callable[..., FakeServer], many_clients: Start, transport: str
) -> None:
    shop = shared(fake_mcp, transport)
    [anna] = await many_clients(shop, 1)
    with pytest.raises(ErrorAnswer) as refused:
        await anna.call("fail", {"word": "w"})
    assert (refused.value.code, refused.value.message, refused.value.data) == (-32050, "w", {"word": "w"})
    held = anna.call("wait", {"word": "a"}, id="x")
    with pytest.raises(ValueError, match="'x'"):
        anna.call("who", id="x")
    await shop.record.until(lambda seen: seen.events("held"))
    anna.cancel(held)
    await shop.record.until(lambda seen: seen.events("cancelled"))


def test_without_asyncio(fake_mcp: Callable[..., FakeServer], many_clients: Start) -> None:
    [anna, ben] = many_clients(shared(fake_mcp, "http").url, 2).result()
    assert (anna.name, ben.name) == ("client-1", "client-2")
    assert anna.opening["serverInfo"] == {"name": "shared", "version": "1.0.0"}
    who = json.loads(ben.call("who").result().text)
    assert who["session"] in (1, 2)


def test_a_client_that_can_not_be_started_says_why(many_clients: Start) -> None:
    with pytest.raises(ConnectionEnded, match="saying: no such thing"):
        many_clients([sys.executable, "-c", "import sys; sys.exit('no such thing')"], 2).result()
    with pytest.raises(OSError, match="no-such-program"):
        many_clients("no-such-program --at-all", 1).result()
    with pytest.raises(ConnectionEnded, match="the connection broke"):
        many_clients("http://127.0.0.1:1/mcp", 1).result()
    with pytest.raises(TypeError, match="nickname"):
        many_clients("x", [{"nickname": "a"}])


async def test_an_answer_that_does_not_come_is_named(
    fake_mcp: Callable[..., FakeServer], many_clients: Start
) -> None:
    shop = fake_mcp(tools=["pay"], faults=[{"kind": "silence", "tool": "pay"}])
    [anna] = await many_clients(shop, 1)
    anna.patience = 0.1
    with pytest.raises(TimeoutError, match=r"client-1, tools/call: nothing came within 0\.1 s"):
        await anna.call("pay")


def test_the_example_of_the_guide_passes_as_it_stands(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "fakes.md").read_text(encoding="utf-8")
    section = guide.partition("\n## Several clients\n")[2].partition("\n## ")[0]
    examples = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert len(examples) == 1
    (tmp_path / "test_mine.py").write_text(examples[0], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
