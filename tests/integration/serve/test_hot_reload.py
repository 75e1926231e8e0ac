"""The config file is edited while `mcpzip serve` runs."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import mcp_types as t
import pytest
from helpers.driver import Client, Json, ended, environment, run, serving, until, write_config
from helpers.sdk_client import PATIENCE, Talk, comes, talking
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

OFTEN = """
from mcpzip.server import config_watcher
config_watcher.INTERVAL = 0.01
from mcpzip.cli.main import main
main()
"""
CALLS, EDITS, BROKEN = 1_000, 50, 10
AT_ONCE = 4


@contextmanager
def watching_often(folder: Path) -> Iterator[Client]:
    """`serving`, but the file is looked at all the time, so that many edits take little time."""
    with (folder / "stderr.log").open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", OFTEN, "serve", "--config", str(folder / "config.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
        )
    with ended(process):
        client = Client(process).begin()
        yield client
        assert client.leave() == 0


def log(folder: Path) -> str:
    return (folder / "stderr.log").read_text("utf-8")


def starts(*fakes: FakeServer) -> list[int]:
    return [len(fake.record.events("start")) for fake in fakes]


def test_an_edit_is_used_without_a_restart(fake_mcp: Fake, tmp_path: Path) -> None:
    """A server is added, renamed, changed, disabled, spoilt, mended and removed."""
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])

    def works(client: Client, tool: str) -> bool:
        return not client.execute(tool).failed

    with serving(tmp_path, shop) as client:
        client.finds("pay", "shop__pay")
        write_config(tmp_path, shop, bank)
        until(lambda: "bank" in client.status())
        client.finds("transfer", "bank__transfer")
        assert works(client, "bank__transfer")
        write_config(tmp_path, shop, others={"credit": bank.config})
        until(lambda: "credit" in client.status())
        assert works(client, "credit__transfer")
        assert not works(client, "bank__transfer")
        write_config(tmp_path, shop, others={"credit": {**bank.config, "tools": {"deny": ["*"]}}})
        until(lambda: not works(client, "credit__transfer"))
        write_config(tmp_path, shop, others={"credit": {**bank.config, "disabled": True}})
        until(lambda: "credit: disabled" in client.status())
        write_config(tmp_path, shop, others={"credit": {"command": []}})
        until(lambda: "credit: failing" in client.status())
        write_config(tmp_path, shop, others={"credit": bank.config})
        until(lambda: works(client, "credit__transfer"))
        write_config(tmp_path, shop)
        until(lambda: "credit" not in client.status())
        assert works(client, "shop__pay")
    assert starts(shop) == [1]
    assert log(tmp_path).count("The config has changed: ") == 7


def named(client: Client, what: str) -> bool:
    return what in client.status()


def test_a_broken_edit_is_refused_and_named_until_it_is_mended(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    with serving(tmp_path, shop) as client:
        client.finds("pay", "shop__pay")
        config = tmp_path / "config.json"
        good = config.read_text()
        for broken, why in ((good[:-5], "not JSON"), ('{"mcpServers": []}', "mcpServers"), ("", "is empty")):
            config.write_text(broken)
            until(partial(named, client, why))
            assert "stays in use" in client.status()
            assert not client.execute("shop__pay").failed
        until(lambda: b"stays in use" in run("status", "--config", str(config)).stdout)
        assert b"says of its config" in run("doctor", "--offline", "--config", str(config)).stdout
        assert log(tmp_path).count("stays in use") == 3
        config.unlink()
        until(lambda: "no such file" in client.status())
        config.write_text(good)
        until(lambda: "config:" not in client.status())
        assert not client.execute("shop__pay").failed
    assert starts(shop) == [1]
    assert log(tmp_path).count("stays in use") == 4


def test_a_setting_that_waits_for_a_start_is_named(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    said = "search.semantic changed: takes effect when mcpzip is started again"
    with serving(tmp_path, shop) as client:
        client.status()  # the config is in use: the handshake is answered before
        write_config(tmp_path, shop, search={"semantic": "off"}, call_timeout_secnds=3)
        until(lambda: said in client.status())
        assert log(tmp_path).count(said) == 1
        assert "call_timeout_seconds" in log(tmp_path)  # may be meant


@pytest.mark.parametrize("content", [None, "", '{"mcpServers": {}}'])
def test_a_config_appears_after_the_start(
    fake_mcp: Fake, tmp_path: Path, isolated: Path, content: str | None
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    folder = isolated / ".config" / "compressed-mcp-proxy"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "config.json").write_text(content)
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpzip", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with ended(process):
        client = Client(process).begin()
        assert client.status().startswith("0 servers")
        if not content:
            assert "Until there is a config, mcpzip runs without servers." in client.status()
        write_config(folder, shop)
        client.finds("pay", "shop__pay")
        assert "config:" not in client.status()
        assert client.leave() == 0


def test_a_config_in_the_other_folder_is_named(fake_mcp: Fake, isolated: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpzip", "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with ended(process):
        client = Client(process).begin()
        assert client.status().startswith("0 servers")
        other = isolated / ".config" / "mcpzip"
        other.mkdir(parents=True)
        write_config(other, fake_mcp(name="shop", tools=["pay"]))
        said = until(lambda: text if "restart your client" in (text := client.status()) else "")
        assert str(other / "config.json") in said
        assert "Until then mcpzip runs without servers." in said
        assert "stays in use" not in said  # there was none
        assert client.leave() == 0


def test_the_stored_handshake_is_that_of_the_edited_config(fake_mcp: Fake, tmp_path: Path) -> None:
    shop, bank = fake_mcp(name="shop", tools=["pay"]), fake_mcp(name="bank", tools=["transfer"])
    with serving(tmp_path, shop) as client:
        client.finds("pay", "shop__pay")
        write_config(tmp_path, shop, bank, search={"default_limit": 7})
        client.finds("transfer", "bank__transfer")
    kept = json.loads((tmp_path / "cache" / "config.json.handshake.json").read_text())
    assert "bank, shop" in kept["initialize"]["instructions"]
    assert 7 in kept["stamp"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_clients_hear_of_lists_that_changed(
    fake_mcp: Fake, tmp_path: Path, transport: str, mode: str
) -> None:
    shop = fake_mcp(name="shop", tools=["pay"])
    bank = fake_mcp(name="bank", tools=["transfer"], prompts=[{"name": "advice"}])
    async with talking(tmp_path, transport, mode, shop, expose="direct") as talk:
        assert await names(talk) == ["shop__pay"]
        async with hearing(talk, mode) as heard:
            write_config(tmp_path, shop, expose="direct", call_timeout_seconds=99)
            write_config(tmp_path, shop, bank, expose="direct")
            await comes(lambda: {"tools", "prompts"} <= {*heard}, talk.news)
            assert await names(talk) == ["bank__transfer", "shop__pay"]
            heard.clear()
            write_config(tmp_path, bank, expose="direct")
            await comes(lambda: "tools" in heard, talk.news)
            assert await names(talk) == ["bank__transfer"]
            assert "prompts" not in heard


async def names(talk: Talk) -> list[str]:
    return [tool.name for tool in (await talk.client.list_tools()).tools]


@asynccontextmanager
async def hearing(talk: Talk, mode: str) -> AsyncIterator[list[str]]:
    """The lists of which the client hears that they changed."""
    heard: list[str] = []

    async def listen(message: object) -> None:
        match message:
            case t.ToolListChangedNotification():
                heard.append("tools")
            case t.PromptListChangedNotification():
                heard.append("prompts")

    if mode == "legacy":
        talk.on_message = listen
        yield heard
        return
    async with talk.client.listen(tools_list_changed=True, prompts_list_changed=True) as events:

        async def take() -> None:
            async for event in events:
                heard.append(type(event).__name__.removesuffix("ListChanged").lower())
                talk.news.set()

        taking = asyncio.create_task(take())
        yield heard
        taking.cancel()


def replace(folder: Path, content: str) -> None:
    """Writes the config as most editors do: looked at so often, it would be found half written."""
    draft = folder / "draft.json"
    draft.write_text(content)
    os.replace(draft, folder / "config.json")


def test_many_edits_disturb_no_call(fake_mcp: Fake, tmp_path: Path) -> None:
    """1,000 calls, while the config is edited 50 times and ten of the edits are broken."""
    near = fake_mcp(name="near", tools=["pay"])
    far = fake_mcp(name="far", transport="http", tools=["pay"])
    moving = fake_mcp(name="moving", tools=["pay"])
    write_config(tmp_path, near, far, moving)
    edited, drafts = threading.Event(), tmp_path / "drafts"
    drafts.mkdir()

    def others(number: int) -> Json:
        """One server changes with every fifth edit, another comes and goes."""
        config = {"moving": {**moving.config, "env": {**moving.env, "EDIT": str(number // 5)}}}
        return {**config, "visitor": moving.config} if number % 2 else config

    def used(times: int) -> bool:
        return log(tmp_path).count("The config has changed: ") == times

    def refused(times: int) -> bool:
        return log(tmp_path).count("stays in use") == times

    def edit() -> None:
        try:
            for number in range(EDITS):
                if number % 5 == 2:
                    replace(tmp_path, '{"mcpServers": {' if number % 2 else "[]")
                    until(partial(refused, number // 5 + 1))
                else:
                    keys = {"call_timeout_seconds": 60 + number}
                    edited_config = write_config(drafts, near, far, others=others(number), **keys)
                    replace(tmp_path, edited_config.read_text())
                    until(partial(used, number + 1 - (number + 2) // 5))
        finally:
            edited.set()

    with watching_often(tmp_path) as client, ThreadPoolExecutor(1) as editor:
        for name in ("near", "far", "moving"):
            client.finds(f"{name} pay", f"{name}__pay")
        editing = editor.submit(edit)
        open_calls: dict[int, tuple[str, int]] = {}
        called = 0
        while called < CALLS or not edited.is_set() or open_calls:
            while len(open_calls) < AT_ONCE and (called < CALLS or not edited.is_set()):
                name = ("near", "far", "near", "moving")[called % 4]
                open_calls[client.send_call(f"{name}__pay", {"id": called})] = name, called
                called += 1
            number, (name, sent) = next(iter(open_calls.items()))
            answer = client.answer(number)
            assert not answer.failed, (name, answer.text, log(tmp_path)[-1000:])
            assert json.loads(answer.text) == {"id": sent}
            del open_calls[number]
        editing.result(PATIENCE)
        assert refused(BROKEN)
        assert used(EDITS - BROKEN)
        assert called >= CALLS
    for fake, share in ((near, 2), (far, 1)):
        assert len(fake.record.calls("pay")) in range(called * share // 4, called * share // 4 + share + 1)
    assert starts(near) == [1]  # the same process all the time
    assert starts(moving)[0] > 2  # and to this one there were calls all the time
    assert len(far.record.received("server/discover")) + len(far.record.received("initialize")) <= 2
