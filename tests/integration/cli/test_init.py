"""`mcpzip init`: a person at a terminal, from nothing to a first answered call; and a script."""

import json
import os
import re
import select
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.driver import PATIENCE, Json, command, environment, run
from mcpzip_fakes.embeddings import FakeEmbeddings
from mcpzip_fakes.gemini import FakeGemini
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.pytest_plugin import fake_embeddings as fake_embeddings
from mcpzip_fakes.pytest_plugin import fake_gemini as fake_gemini

from mcpzip.cli.commands import run as run_here

Fake = Callable[..., FakeServer]

PAY = {"name": "pay_invoice", "description": "Pay an invoice", "result": {"text": "paid"}}
CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[^\[])|[\x00-\x08\x0b-\x1f\x7f]")

posix_only = pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals")


@pytest.fixture
def home(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MCPZIP_CONFIG", "NO_COLOR", "TERM", "COLUMNS", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("MCPZIP_PROJECT", "off")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.chdir(isolated)
    return isolated


def config_of(home: Path) -> Json:
    return json.loads((home / ".config" / "compressed-mcp-proxy" / "config.json").read_text())


def line_for(fake: FakeServer) -> str:
    """The command line of a fake, with its environment."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in fake.env.items()]
    return " ".join([*variables, shlex.join(fake.command)])


class Hidden(str):
    """An answer that is typed when the terminal no longer echoes: what was typed before that is discarded."""


def converse(words: Sequence[str], answers: Sequence[tuple[str, str]], **more: str) -> str:
    """Plays a conversation on a terminal of 80 columns. answers: what is typed after each text that is waited
    for, in order. Returns all that was shown; the command must end with code 0.
    """
    import fcntl
    import pty
    import struct
    import termios

    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, command(*words), environment(**more))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown, seen, left = "", 0, list(answers)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if left and (at := shown.find(left[0][0], seen)) >= 0:
            if isinstance(left[0][1], Hidden) and termios.tcgetattr(terminal)[3] & termios.ECHO:
                select.select([terminal], [], [], 0.01)
                continue
            seen = at + len(left[0][0])
            os.write(terminal, left.pop(0)[1].encode() + b"\n")
            continue
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
        if not data:
            break
        shown += data.decode("utf-8", "replace")
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert left == [], shown
    assert os.waitstatus_to_exitcode(status) == 0, shown
    return shown


@posix_only
def test_from_nothing_to_a_first_answered_call(fake_mcp: Fake, home: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    (home / ".cursor").mkdir()
    shown = converse(
        ["init"],
        [
            ("Add a server", f"claude mcp add shop -- env {line_for(shop)}"),
            ("Added shop with 1 tools", ""),
            ("Set up more", ""),
            ("Register mcpzip with Cursor", "y"),
        ],
    )
    assert "mcpzip has 1 server in" in shown
    assert "Next: mcpzip search" in shown
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["mcpzip"]
    assert entry["args"] == ["serve"]
    done = run("call", "shop__pay_invoice")
    assert done.stdout.strip() == b"paid"


@posix_only
def test_servers_of_clients_are_moved_and_left_if_the_person_says_no(home: Path) -> None:
    claude = home / ".claude.json"
    text = json.dumps({"mcpServers": {"a": {"command": "a"}}, "other": 1}, indent=2)
    claude.write_text(text)
    shown = converse(
        ["init"], [("Move them", "n"), ("Add a server", ""), ("Register mcpzip with Claude", "n")]
    )
    assert claude.read_text() == text
    assert not (home / ".config" / "compressed-mcp-proxy" / "config.json").exists()
    assert "mcpzip has 0 servers" in shown
    converse(["init"], [("Move them", "y"), ("Add a server", ""), ("Set up more", "")])
    assert list(json.loads(claude.read_text())["mcpServers"]) == ["mcpzip"]
    assert config_of(home)["mcpServers"] == {"a": {"command": "a"}}
    run("migrate", "--undo")
    assert claude.read_text() == text


@posix_only
def test_a_server_that_does_not_answer_is_told_and_added_only_on_request(home: Path) -> None:
    shown = converse(
        ["init"],
        [("Add a server", "no-such-program x"), ("Add it all the same", "n"), ("Add a server", "")],
    )
    assert "no-such-program does not answer" in shown.replace("\r\n", " ")
    assert not (home / ".config" / "compressed-mcp-proxy" / "config.json").exists()
    converse(
        ["init"],
        [
            ("Add a server", "no-such-program x"),
            ("Add it all the same", "y"),
            ("Add a server", ""),
            ("Set", ""),
        ],
    )
    assert list(config_of(home)["mcpServers"]) == ["no-such-program"]


@posix_only
def test_a_secret_is_asked_for_without_an_echo(fake_mcp: Fake, home: Path) -> None:
    secret = "tk-7f3b9a1c5d2e8f60"
    shop = fake_mcp(name="shop", tools=[PAY])
    entry = {
        "command": shop.command[0],
        "args": shop.command[1:],
        "env": {**shop.env, "SHOP_KEY": "${SHOP_KEY}"},
    }
    shown = converse(
        ["init"],
        [
            ("Add a server", json.dumps({"shop": entry})),
            ("SHOP_KEY", Hidden(secret)),
            ("Added shop", ""),
            ("Set", ""),
        ],
    )
    assert secret not in shown
    assert config_of(home)["mcpServers"]["shop"]["env"]["SHOP_KEY"] == secret
    assert os.stat(home / ".config" / "compressed-mcp-proxy" / "config.json").st_mode & 0o077 == 0


@posix_only
def test_json_of_several_lines_can_be_pasted(fake_mcp: Fake, home: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    text = json.dumps({"mcpServers": {"shop": shop.config}}, indent=2)
    converse(["init"], [("Add a server", text), ("Added shop", ""), ("Set up more", "n")])
    assert list(config_of(home)["mcpServers"]) == ["shop"]


@posix_only
@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_for_a_screen_reader_there_is_text_and_nothing_else(
    fake_mcp: Fake, home: Path, plain: dict[str, str]
) -> None:
    """No colour, no spinner, no box, no movement of the cursor, and no line longer than the terminal."""
    shop = fake_mcp(name="shop", tools=[PAY])
    (home / ".cursor").mkdir()
    shown = converse(
        ["init"],
        [("Add a server", f"env {line_for(shop)}"), ("Added", ""), ("Set up more", ""), ("Register", "n")],
        **plain,
    )
    typed = shown.replace("\r\n", "\n")
    assert CONTROL.sub("", typed) == typed
    assert not re.search("[─━│┃┏╭⠋⠙]", typed)


@posix_only
def test_an_embedding_server_and_a_gemini_key_are_tried_and_written(
    fake_mcp: Fake,
    fake_embeddings: Callable[..., FakeEmbeddings],
    fake_gemini: Callable[..., FakeGemini],
    home: Path,
) -> None:
    pytest.importorskip("google.genai")
    key = "AIza-7f3b9a1c5d2e8f60"
    meaning, google = fake_embeddings(), fake_gemini(key=key)
    shop = fake_mcp(name="shop", tools=[PAY])
    shown = converse(
        ["init"],
        [
            ("Add a server", f"env {line_for(shop)}"),
            ("Added", ""),
            ("Set up more", "y"),
            ("By meaning", meaning.url),
            ("Gemini API key", Hidden(key)),
        ],
        GOOGLE_GEMINI_BASE_URL=google.url,
    )
    assert key not in shown
    assert "The search uses Gemini" in shown
    config = config_of(home)
    assert config["search"] == {"semantic": meaning.url}
    assert config["gemini_api_key"] == key
    assert os.stat(home / ".config" / "compressed-mcp-proxy" / "config.json").st_mode & 0o077 == 0
    shown = converse(["init"], [("Add a server", "")])
    assert "Set up more" not in shown  # it is


@posix_only
def test_a_gemini_key_that_is_refused_is_told_and_not_written(
    fake_mcp: Fake, fake_gemini: Callable[..., FakeGemini], home: Path
) -> None:
    pytest.importorskip("google.genai")
    google, shop = fake_gemini(key="right"), fake_mcp(name="shop", tools=[PAY])
    shown = converse(
        ["init"],
        [
            ("Add a server", f"env {line_for(shop)}"),
            ("Added", ""),
            ("Set up more", "y"),
            ("By meaning", ""),
            ("Gemini API key", Hidden("wrong")),
            ("Use it all the same", ""),
        ],
        GOOGLE_GEMINI_BASE_URL=google.url,
    )
    assert "Gemini does not answer: " in shown
    assert list(config_of(home)) == ["mcpServers"]


@posix_only
def test_control_c_at_a_question_leaves_everything_as_it_was(home: Path) -> None:
    claude = home / ".claude.json"
    claude.write_text('{"mcpServers": {"a": {"command": "a"}}}')
    with pytest.raises(AssertionError):
        converse(["init"], [("Move them", "\x03")])
    assert claude.read_text() == '{"mcpServers": {"a": {"command": "a"}}}'
    assert not (home / ".config" / "compressed-mcp-proxy" / "config.json").exists()


# ---- without a terminal


def test_without_a_terminal_it_says_which_options_there_are(home: Path) -> None:
    done = run("init", stdin=b"y\n")
    assert done.returncode == 2
    assert b"--yes, --server and --client" in done.stderr


def test_a_script_moves_adds_and_registers(fake_mcp: Fake, home: Path) -> None:
    shop = fake_mcp(name="shop", tools=[PAY])
    (home / ".claude.json").write_text('{"mcpServers": {"a": {"command": "a"}}}')
    server = json.dumps({"shop": shop.config})
    done = run("init", "--yes", "--server", server, "--client", "codex", "--client", "gemini")
    assert done.returncode == 0, done.stderr
    assert list(config_of(home)["mcpServers"]) == ["a", "shop"]
    assert list(json.loads((home / ".claude.json").read_text())["mcpServers"]) == ["mcpzip"]
    assert "[mcp_servers.mcpzip]" in (home / ".codex" / "config.toml").read_text()
    assert "mcpzip" in json.loads((home / ".gemini" / "settings.json").read_text())["mcpServers"]
    before = {path: path.read_bytes() for path in home.rglob("*") if path.suffix in (".json", ".toml")}
    again = run("init", "--yes", "--client", "codex", "--client", "gemini")
    assert again.returncode == 0
    assert all(path.read_bytes() == data for path, data in before.items() if "cache" not in path.parts)


def test_a_script_sets_how_tools_are_found_by_meaning(
    home: Path, fake_embeddings: Callable[..., FakeEmbeddings], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["init", "--yes", "--no-register", "--no-check", "--server", "x"]
    assert run_here([*words, "--semantic", "off"]) == 0
    assert config_of(home)["search"] == {"semantic": "off"}
    words = ["init", "--yes", "--no-register"]
    assert run_here([*words, "--semantic", "nosuch"]) == 1
    assert 'write "local"' in capsys.readouterr().err
    with fake_embeddings() as meaning:
        assert run_here([*words, "--semantic", meaning.url]) == 0
    assert run_here([*words, "--semantic", meaning.url]) == 1
    assert "does not answer: it can't be reached: is it running?\n" in capsys.readouterr().err
    assert config_of(home)["search"] == {"semantic": meaning.url}


def test_a_second_server_of_a_name_gets_another(fake_mcp: Fake, home: Path) -> None:
    server = json.dumps({"shop": fake_mcp(name="shop", tools=[PAY]).config})
    assert run("init", "--yes", "--no-register", "--server", server, "--server", server).returncode == 0
    assert list(config_of(home)["mcpServers"]) == ["shop", "shop-2"]


def test_a_script_hears_what_failed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_here(["init", "--yes", "--server", "no-such-program", "--no-register"]) == 1
    assert "does not answer" in capsys.readouterr().err
    assert run_here(["init", "--yes", "--server", "{", "--no-register"]) == 1
    assert "no JSON" in capsys.readouterr().err
    assert run_here(["init", "--yes", "--client", "emacs"]) == 2
    assert "There is no client 'emacs'" in capsys.readouterr().err
    assert run_here(["init", "--yes", "--no-check", "--server", "no-such-program", "--no-register"]) == 0


def test_a_folder_and_a_missing_variable(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["init", "--yes", "--no-check", "--no-register"]
    assert run_here([*words, "--server", "filesystem", "--folder", "~/notes", "--server", "github"]) == 0
    said = capsys.readouterr()
    assert "GITHUB_TOKEN is not set (a personal access token of GitHub)" in said.err
    servers = config_of(home)["mcpServers"]
    assert servers["filesystem"]["args"][-1] == str(home / "notes")
    assert servers["github"]["headers"] == {"Authorization": "Bearer ${GITHUB_TOKEN}"}
