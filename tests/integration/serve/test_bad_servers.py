"""One bad server hurts nobody, and everybody is told what is wrong with it and what to do."""

import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.driver import Json, run, run_here, serving, until, write_config
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

SEND: Json = {
    "name": "send_message",
    "description": "Send a message to a channel",
    "result": {"text": "sent"},
}
PAY: Json = {"name": "pay_invoice", "description": "Pay an invoice", "result": {"text": "paid"}}

WRONG = {
    "missing": ("the command 'no-such-command-anywhere' was not found", "Install it, or fix 'command'"),
    "joined": ("the command 'no-such -y shop' was not found", "Put 'no-such' into 'command', the rest into"),
    "exits": ("it exited with code 3, saying “no token, giving up”", "Run its command by hand"),
    "refused": ("nothing accepts connections at http://127.0.0.1:", "Start the server, or fix 'url'"),
    "error500": ("it answered HTTP 500", "its own log"),
    "signin": ("it needs a login: nobody has signed in", "Run: mcpzip auth login signin"),
    "lost": ("it answered HTTP 404", "Check 'url'"),
    "odd": ("it refused the handshake: “what is this?” (-32050)", "Check that it is an MCP server"),
}
"""By server: what is said to be wrong, and what to do."""


@dataclass
class Town:
    """Two good servers, one that talks too much, one that never answers, and eight that fail."""

    good: list[FakeServer]
    chatty: FakeServer
    silent: FakeServer
    config: Path


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of this machine that refuses connections, and that nobody else gets."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def town(fake_mcp: Fake, tmp_path: Path, taken: int) -> Town:
    def refusing(name: str, status: int) -> FakeServer:
        return fake_mcp(name=name, transport="http", faults=[{"kind": "status", "status": status}])

    town = Town(
        [fake_mcp(name="slack", tools=[SEND]), fake_mcp(name="bank", tools=[PAY])],
        fake_mcp(name="chatty", tools=["ring_bell"], faults=["banner", "junk", "invalid-utf8"]),
        fake_mcp(name="silent", faults=["silence"]),
        tmp_path / "config.json",
    )
    write_config(
        tmp_path,
        *town.good,
        town.chatty,
        town.silent,
        fake_mcp(name="exits", faults=[{"kind": "exit-at-once", "code": 3, "text": "no token, giving up"}]),
        fake_mcp(name="odd", faults=[{"kind": "error", "code": -32050, "message": "what is this?"}]),
        refusing("error500", 500),
        refusing("signin", 401),
        refusing("lost", 404),
        others={
            "missing": {"command": "no-such-command-anywhere"},
            "joined": {"command": "no-such -y shop"},
            "refused": {"url": f"http://127.0.0.1:{taken}/mcp"},
        },
    )
    return town


def test_the_good_ones_are_served_and_each_bad_one_is_explained(town: Town, tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        # The good ones, while others fail and one says nothing
        assert client.finds("send a message to a channel", "slack__send_message").startswith(
            "slack__send_message: "
        )
        assert client.execute("slack__send_message", {"text": "hi"}).text == "sent"
        assert client.finds("pay an invoice", "bank__pay_invoice").startswith("bank__pay_invoice: ")
        assert '"Pay an invoice"' in client.use("describe_tool", name="bank__pay_invoice").text
        assert client.execute("bank__pay_invoice").text == "paid"
        assert client.finds("ring the bell", "chatty__ring_bell")
        assert client.execute("chatty__ring_bell", {"n": 1}).text == '{"n":1}'
        assert town.silent.record.sent() == []

        # What is wrong with the others
        status = until(lambda: text if len(_ill(text := client.status())) == len(WRONG) else "")
        lines = {line.partition(":")[0]: line for line in status.splitlines()}
        for name, (reason, remedy) in WRONG.items():
            assert reason in lines[name]
            assert remedy in lines[name]
        assert "connected, 1 tools" in lines["slack"]
        assert "connected, 1 tools" in lines["chatty"]
        assert lines["silent"].startswith("silent: connecting")

        found = client.search("pay an invoice").splitlines()
        assert found[0].startswith("bank__pay_invoice: ")
        assert found[-1].startswith("-- down: error500")  # why doesn't matter to who has found the tool
        assert not [line for line in found if " is down (" in line]

        found = client.search("translate into Finnish").splitlines()
        told = [line for line in found if " is down (" in line]
        others = found[-1].removeprefix("-- also down: ").removesuffix("; see proxy_status").split(", ")
        assert sorted([line.split()[1] for line in told] + others) == sorted(WRONG)
        assert "-- still starting, their tools are not in this answer: silent" in found
        assert told[0].startswith("-- error500 is down (no tools yet): it answered HTTP 500")

        # Asking for what is not there
        assert "no token, giving up" in client.execute("exits__anything").text
        assert town.silent.record.sent() == []


def test_the_command_says_the_same(town: Town) -> None:
    config = json.loads(town.config.read_text())
    del config["mcpServers"]["silent"]  # it would be waited for
    town.config.write_text(json.dumps(config))
    done = run_here("servers", "--json", "--config", str(town.config))
    assert done.returncode == 1
    found = {one["name"]: one for one in json.loads(done.stdout)}
    for name, (reason, remedy) in WRONG.items():
        assert found[name]["state"] == ("needs login" if name == "signin" else "failing")
        assert reason in found[name]["reason"]
        assert remedy in found[name]["reason"]
    for name in ("slack", "bank", "chatty"):
        assert (found[name]["state"], found[name]["tools"], found[name]["reason"]) == ("connected", 1, "")
    assert b"Traceback" not in done.stderr

    shown = run("servers", "--cached", "--config", str(town.config), COLUMNS="400").stdout.decode()
    for name, (reason, remedy) in WRONG.items():
        (line,) = [line for line in shown.splitlines() if line.split()[:1] == [name]]
        assert reason in line
        assert remedy in line


def test_a_command_waits_for_no_server_it_does_not_need(town: Town) -> None:
    """`call` and `describe` listed every server first: with a silent one they took half a minute."""
    done = run_here("call", "bank__pay_invoice", "--config", str(town.config))
    assert (done.returncode, done.stdout) == (0, b"paid\n")
    done = run_here("describe", "slack__send_message", "--json", "--config", str(town.config))
    assert json.loads(done.stdout)["description"] == SEND["description"]
    assert town.silent.record.lines() == []
    assert town.chatty.record.lines() == []


def _ill(status: str) -> list[str]:
    """The lines of servers that can't be used."""
    return [line for line in status.splitlines() if ": failing" in line or ": needs login" in line]
