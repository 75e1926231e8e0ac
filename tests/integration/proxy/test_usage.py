"""What was called with success rises; that can be turned off; `mcpzip usage` shows and forgets."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, executed, proxy_of, said_by, serving, write_config
from helpers.driver import run_here as run
from mcpzip_fakes.launch import FakeServer

from mcpzip.cli.commands import run as run_here
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.tool_usage import load, usage_path

Fake = Callable[..., FakeServer]
Capture = pytest.CaptureFixture[str]

OPEN: Json = {"name": "open_door", "description": "Open a door of the house"}
SHUT: Json = {"name": "shut_door", "description": "Shut a door of the house"}
FAIL: Json = {"name": "fail", "result": {"text": "no", "isError": True}}


def kept(folder: Path) -> dict[str, float]:
    uses, warnings = load(usage_path(str(folder / "config.json")))
    assert warnings == ()
    return {name: round(use.calls) for name, use in uses.items()}


async def order(proxy: Proxy) -> list[str]:
    result = await said_by(proxy, "search_tools", {"query": "a door of the house"})
    return [row["name"] for row in result["_meta"]["mcpzip/search"]["results"]]


async def test_a_tool_that_was_used_is_the_first_of_equals_from_then_on(
    fake_mcp: Fake, tmp_path: Path
) -> None:
    shop = fake_mcp(name="shop", tools=[OPEN, SHUT, FAIL])
    async with proxy_of(tmp_path, shop, search={"semantic": "off", "details": True}) as proxy:
        assert await order(proxy) == ["shop__open_door", "shop__shut_door"]
        await executed(proxy, "shop__fail")
        await executed(proxy, "proxy_status")
        for _ in range(2):
            await executed(proxy, "shop__shut_door")
        assert await order(proxy) == ["shop__shut_door", "shop__open_door"]
    assert kept(tmp_path) == {"shop__shut_door": 2}
    async with proxy_of(tmp_path, shop, search={"semantic": "off", "details": True}) as proxy:
        assert await order(proxy) == ["shop__shut_door", "shop__open_door"]


async def test_who_does_not_want_it_learns_nothing(fake_mcp: Fake, tmp_path: Path) -> None:
    shop = fake_mcp(name="shop", tools=[OPEN, SHUT])
    async with proxy_of(tmp_path, shop, search={"learn": False}) as proxy:
        await executed(proxy, "shop__shut_door")
    assert kept(tmp_path) == {}


ANNOUNCE: Json = {"name": "post_message", "description": "Send a message to a channel"}
WORDS = "warn my colleagues of the closed door"


def test_the_words_that_led_to_a_tool_find_it_the_next_time(fake_mcp: Fake, tmp_path: Path) -> None:
    """A client searches in its own words, in vain, then in others, and calls what these have found."""
    chat = fake_mcp(name="chat", tools=[ANNOUNCE])
    house = fake_mcp(name="house", tools=[OPEN, SHUT])
    with serving(tmp_path, chat, house) as client:
        client.finds("message", "chat__post_message")
        client.finds("house", "house__shut_door")
        assert client.search(WORDS).startswith("house__shut_door")
        assert client.search("send my colleagues a message").startswith("chat__post_message")
        client.execute("chat__post_message")
        assert client.search(WORDS).startswith("chat__post_message")
        assert client.search("shut door").startswith("house__shut_door")
    with serving(tmp_path) as client:
        assert client.search(WORDS).startswith("chat__post_message")
    config = ("--config", str(tmp_path / "config.json"))
    (tool,) = json.loads(run("usage", "--json", *config).stdout)["tools"]
    assert {"warn", "colleagu", "door"} <= tool["words"].keys()
    assert b"learned words +" in run("search", WORDS, "--explain", *config, COLUMNS="250").stdout
    assert b"chat__post_message" in run("usage", "--forget", *config).stdout
    assert b"No use" in run("usage", *config).stdout
    with serving(tmp_path) as client:
        assert client.search(WORDS).startswith("house__shut_door")


@pytest.fixture
def used(fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A config of which two tools were used."""
    monkeypatch.setenv("COLUMNS", "200")
    config = write_config(tmp_path, fake_mcp(name="shop", tools=[OPEN, SHUT]))
    monkeypatch.setenv("MCPZIP_CONFIG", str(config))
    path = Path(usage_path(str(config)))
    path.parent.mkdir()
    tools = {"shop__open_door": {"calls": 3.0, "at": 4e9}, "shop__shut_door": {"calls": 1.0, "at": 4e9}}
    path.write_text(json.dumps({"format": "mcpzip-usage", "version": 1, "tools": tools}))
    return config


def test_it_is_shown(used: Path, capsys: Capture) -> None:
    assert run_here(["usage"]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["tool", "counts", "last"]
    assert first.split()[:2] == ["shop__open_door", "3.00"]
    assert second.split()[:2] == ["shop__shut_door", "1.00"]
    assert run_here(["usage", "shop__shut_door", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "learn": True,
        "tools": [{"name": "shop__shut_door", "calls": 1.0, "last": 4e9, "words": {}}],
    }


def test_the_words_are_shown(used: Path, capsys: Capture) -> None:
    path = Path(usage_path(str(used)))
    file = json.loads(path.read_text())
    file["tools"]["shop__open_door"]["words"] = {"unlock": 1.0, "enter": 2.0}
    path.write_text(json.dumps(file))
    assert run_here(["usage"]) == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["tool", "counts", "last", "words"]
    assert first.endswith("enter 2.00, unlock 1.00")
    assert second.split()[:2] == ["shop__shut_door", "1.00"]
    assert run_here(["usage", "shop__open_door", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["tools"]
    assert told["words"] == {"enter": 2.0, "unlock": 1.0}
    for keys, why in (
        ({"search": {"learn": "calls"}}, 'says "learn": "calls"'),
        ({"http": {"api_keys": "keys.json"}}, "several people"),
    ):
        used.write_text(json.dumps({"mcpServers": {}, **keys}))
        assert run_here(["usage"]) == 0
        assert why in capsys.readouterr().out.splitlines()[-1]


def test_it_is_forgotten(used: Path, capsys: Capture) -> None:
    assert run_here(["usage", "--forget", "shop__open_door", "nobody__knows"]) == 0
    assert capsys.readouterr().out == "Forgotten: shop__open_door.\n"
    assert kept(used.parent) == {"shop__shut_door": 1}
    assert run_here(["usage", "--forget"]) == 0
    assert not Path(usage_path(str(used))).exists()
    assert run_here(["usage", "--forget"]) == 0
    assert "nothing" in capsys.readouterr().out.splitlines()[-1]
    assert run_here(["usage"]) == 0
    assert "No use of a tool is remembered." in capsys.readouterr().out


def test_that_nothing_is_learnt_is_said(used: Path, capsys: Capture) -> None:
    used.write_text(json.dumps({**json.loads(used.read_text()), "search": {"learn": False}}))
    assert run_here(["usage"]) == 0
    assert '"learn": false' in capsys.readouterr().out


def test_a_file_that_can_not_be_used_is_told(used: Path, capsys: Capture) -> None:
    path = Path(usage_path(str(used)))
    path.write_text("damaged")
    assert run_here(["usage"]) == 0
    assert "start anew" in capsys.readouterr().err
    path.write_text('{"format": "mcpzip-usage", "version": 9}')
    for words in (["usage"], ["usage", "--forget"]):
        assert run_here(words) == 2
        assert "newer version" in capsys.readouterr().err
