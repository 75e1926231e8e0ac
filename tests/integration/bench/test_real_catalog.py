"""The catalog of real servers: its files, and that a server is listed as it says."""

import json
import sys
from pathlib import Path

import pytest

from bench.retrieval import real_catalog
from bench.retrieval.dataset import read_dataset
from bench.retrieval.real_catalog import DATA, Request, Server, listed, requests, servers, write

SERVERS = servers((DATA / "servers.toml").read_text(encoding="utf-8"))
REQUESTS = requests((DATA / "requests.tsv").read_text(encoding="utf-8"))


def fake(argv: list[str], files: dict[str, str] | None = None) -> Server:
    return Server("chat", False, "mcpzip", (), argv, {"PLACE": "{home}"}, files or {})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every package is installed already."""
    monkeypatch.setattr(real_catalog, "_installed", lambda *_: Path(sys.executable).parent)


def test_the_shipped_servers_are_pinned() -> None:
    assert len({server.name for server in SERVERS}) == len(SERVERS) == 70
    for server in SERVERS:
        name, _, version = server.package.rpartition("@" if server.npm else "==")
        assert name
        assert version[0].isdigit()


def test_the_shipped_requests_name_servers_of_the_catalog() -> None:
    known = {server.name for server in SERVERS}
    for request in REQUESTS:
        assert request.right
        assert {name.partition("__")[0] for name in (*request.right, *request.acceptable)} <= known
        assert not set(request.right) & set(request.acceptable)
    assert len({request.text for request in REQUESTS}) == len(REQUESTS)


@pytest.mark.parametrize("line", ["only a request", "a\t", "\tb", "a\tb\tc\td"])
def test_a_line_that_is_no_request_is_told(line: str) -> None:
    with pytest.raises(ValueError, match=r"requests\.tsv:2"):
        requests(f"send it\tmail__send\n{line}\n")


@pytest.mark.parametrize("packages", ["", "npm = 'a@1'\npypi = 'a==1'\n"])
def test_a_server_has_one_package(packages: str) -> None:
    with pytest.raises(ValueError, match="chat: give either"):
        servers(f"[chat]\nargv = ['a']\n{packages}")


@pytest.mark.usefixtures("installed")
def test_a_server_is_listed(tmp_path: Path) -> None:
    key = "a private key: {key}"
    tools = listed(fake(["mcpzip-fake", "slack"], {"keys/one": key}), tmp_path / "made")
    other = next(tool["name"] for tool in tools if tool["name"] != "send_message")
    assert "send_message" in {tool["name"] for tool in tools}
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)
    written = (tmp_path / "made" / "home" / "keys" / "one").read_text()
    assert written.startswith("a private key: -----BEGIN PRIVATE KEY-----")

    (tmp_path / "listings").mkdir()
    (tmp_path / "listings" / "chat.json").write_text(json.dumps(tools))
    asked = [Request("tell the team", ("chat__send_message",), (f"chat__{other}", "mail__send"))]
    count, missing = write(tmp_path, asked)
    assert (count, missing) == (len(tools), ["mail__send"])
    (query,) = read_dataset(tmp_path).queries
    assert query.relevance == {"chat__send_message": 2, f"chat__{other}": 1}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["mcpzip-fake", "no-such-scenario"], "Connection closed.* it said: .*poisoning"),
        (["no-such-program"], "mcpzip has no program no-such-program"),
    ],
)
def test_a_server_that_does_not_start_says_why(argv: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=why):
        listed(fake(argv), tmp_path / "made")
