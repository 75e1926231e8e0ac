"""`mcpzip eval`: what it measures and tries, on a catalog that was listed before; no server is started."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json
from mcpzip_fakes.embeddings import FakeEmbeddings
from mcpzip_fakes.pytest_plugin import fake_embeddings as fake_embeddings

from mcpzip.catalog import Catalog, ServerRecord, snapshot
from mcpzip.cli import console
from mcpzip.cli import eval as eval_command
from mcpzip.cli.commands import run
from mcpzip.config import load, snapshot_path
from mcpzip.model.entry import Entry
from mcpzip.proxy.tool_usage import UseCount, usage_path
from mcpzip.proxy.tool_usage import save as save_uses

Capture = pytest.CaptureFixture[str]
TO: Json = {"inputSchema": {"properties": {"to": {"type": "string"}}}}
MANY: dict[str, list[Json]] = {
    "slack": [
        {"name": "send_message", "description": "Send a message to a channel"},
        {"name": "list_channels", "description": "List the channels of the workspace"},
        {"name": "open"},
    ],
    "files": [
        {"name": "read_file", "description": "Read the content of a file from the disk"},
        {"name": "write_file", "description": "Write text into a file on the disk"},
    ],
    "mail": [{"name": "send_mail", "description": "Send a mail to a person"}],
    "post": [{"name": "sendMail", "description": "Send a mail to a person", **TO}],
}


class Place:
    """A config with servers that can't be started, and their tools as if they had been listed."""

    def __init__(self, folder: Path, capsys: Capture) -> None:
        self.config, self.capsys = folder / "config.json", capsys
        self.know(MANY)

    def know(self, tools: dict[str, list[Json]], **more: object) -> None:
        servers = {name: {"command": "/does/not/exist"} for name in tools}
        self.config.write_text(json.dumps({"mcpServers": servers, **more}))
        loaded = load(str(self.config), os.environ)
        records = {}
        for name, listed in tools.items():
            entries = tuple(Entry.parse(name, json.dumps(tool).encode()) for tool in listed)
            known = {"fetched_at": time.time(), "fingerprint": loaded.servers[name].fingerprint}
            records[name] = ServerRecord(name, tuple(sorted(entries, key=lambda one: one.name)), **known)
        path = snapshot_path(str(self.config))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        snapshot.save(path, str(self.config), Catalog(records))

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        assert run(["eval", "-c", str(self.config), *words]) == code
        out, err = self.capsys.readouterr()
        return out, err

    def data(self, *words: str, code: int = 0) -> Json:
        found: Json = json.loads(self.run("--json", *words, code=code)[0])
        return found

    def asks(self, *lines: str) -> str:
        path = self.config.parent / "requests.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)


@pytest.fixture
def place(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(console._out, "width", 200)
    monkeypatch.setenv("MCPZIP_PROJECT", "off")
    return Place(tmp_path, capsys)


def test_requests_are_made_from_the_catalog_and_searched(place: Place) -> None:
    found = place.data()
    assert found["tools"] == {"searched": 7, "of_servers": 7, "asked": 7}
    assert sum(kind["count"] for kind in found["kinds"].values()) == found["requests"]["count"]
    assert next(iter(found["kinds"])) == "sentence"
    assert found["kinds"]["sentence"]["recall"]["5"] == 1
    assert list(found["tiers"]) == ["keyword+semantic", "keyword"]
    assert found["tiers"]["keyword+semantic"] == found["all"]
    assert found["same"] == [["mail__send_mail", "post__sendMail"]]
    assert found["short_descriptions"] == ["slack__open"]
    assert found == place.data(), "the same again"


def test_people_read_the_figures_and_what_would_help(place: Place) -> None:
    path = place.asks("transmit a memo to my colleagues\tslack__send_message", "flibbertigibbet\tslack__open")
    out, _ = place.run("--queries", path, "-n", "1")
    assert "2 requests of yours, searched for among 7 tools" in out
    assert "slack__open: not in the first 50" in out
    assert 'If its description (it has 0 words) began with "flibbertigibbet": line 1.' in out
    assert "A pin shows it without a search, for " in out
    out, _ = place.run()
    assert "mail__send_mail, post__sendMail" in out
    assert "sentence" in out


def test_every_change_that_is_named_is_true(place: Place) -> None:
    path = place.asks('{"query": "put the memo onto the drive", "tools": ["files__write_file"]}')
    found = place.data("--queries", path, "-n", "1")
    for miss in found["misses"]:
        for change in miss["changes"]:
            assert change["rank"] == 1
            if change["what"] in ("description", "first words"):
                tools = json.loads(json.dumps(MANY))
                tools["files"][1]["description"] = f"{change['text']}. {tools['files'][1]['description']}"
                place.know(tools)
                again = place.data("--queries", path, "-n", "1")
                assert again["all"]["recall"]["1"] == 1
                place.know(MANY)
    assert found["missed"] == len(found["misses"])


def test_saved_requests_give_the_same_figures(place: Place, tmp_path: Path) -> None:
    saved = tmp_path / "saved.jsonl"
    made = place.data("--save", str(saved))
    again = place.data("--queries", str(saved))
    assert again["requests"] == {"own": True, "count": made["requests"]["count"]}
    for key in ("all", "kinds", "servers", "tiers"):
        assert again[key] == made[key]


def test_a_low_recall_fails_on_ci(place: Place) -> None:
    path = place.asks("send a message\tslack__send_message", "flibbertigibbet\tslack__open")
    _, told = place.run("--queries", path, "--min-recall", "0.5")
    assert told == ""
    _, told = place.run("--queries", path, "--min-recall", "0.51", code=1)
    assert told == "recall@5 is 0.500, lower than --min-recall 0.51.\n"


def test_the_tools_that_are_used_count_by_their_calls(place: Place) -> None:
    uses = {"slack__send_message": UseCount(3, time.time()), "slack__open": UseCount(1, time.time())}
    save_uses(usage_path(str(place.config)), uses, time.time())
    path = place.asks("send a message\tslack__send_message", "flibbertigibbet\tslack__open")
    found = place.data("--queries", path)
    assert found["used"]["recall"]["5"] == pytest.approx(0.75, abs=0.01)
    assert found["misses"][0]["tool"] == "slack__open"
    assert "tools you use" in place.run("--queries", path)[0]


def test_one_server_is_asked_for_among_all(place: Place) -> None:
    found = place.data("-s", "files")
    assert found["tools"] == {"searched": 7, "of_servers": 2, "asked": 2}
    assert list(found["servers"]) == ["files"]
    _, told = place.run("-s", "file", code=2)
    assert "The nearest: files" in told


def test_a_pinned_tool_is_shown_anyway(place: Place) -> None:
    path = place.asks("flibbertigibbet\tslack__open")
    document = json.loads(place.config.read_text())
    document["mcpServers"]["slack"]["pin"] = ["open"]
    place.config.write_text(json.dumps(document))
    (miss,) = place.data("--queries", path)["misses"]
    assert miss["shown_directly"]
    assert "It is shown to clients without a search." in place.run("--queries", path)[0]


def test_of_many_tools_a_sample_is_asked_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert eval_command._SAMPLE == 300
    monkeypatch.setattr(eval_command, "_SAMPLE", 30)
    tools = [{"name": f"tool_{n}", "description": f"Paint the wall number {n}"} for n in range(32)]
    place.know({"paint": tools})
    found = place.data("--misses", "0")
    assert found["tools"] == {"searched": 32, "of_servers": 32, "asked": 30}
    assert "30 of 32 tools, chosen by a hash of their names" in place.run("--misses", "0")[0]
    assert place.data("--all")["tools"]["asked"] == 32


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a\tslack__send_mesage", "did you mean 'slack__send_message'?"),
        ("no tab", "line 1: no tool is named"),
        ("", "No request is left"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(place: Place, line: str, reason: str) -> None:
    _, told = place.run("--queries", place.asks(line), code=1 if not line else 2)
    assert reason in told


def test_a_wrong_tier_is_refused(place: Place) -> None:
    assert "Did you mean keyword?" in place.run("--tiers", "keyward", code=2)[1]
    assert "has no remote tier" in place.run("--tiers", "remote", code=2)[1]


def test_nothing_to_evaluate_is_said(place: Place) -> None:
    place.know({"slack": [{"name": "open"}]})
    assert "No request can be made" in place.run(code=1)[1]
    place.config.write_text('{"mcpServers": {}}')
    assert "There are no tools" in place.run(code=1)[1]


def test_remote_tiers_are_asked_only_on_request(
    place: Place, fake_embeddings: Callable[..., FakeEmbeddings]
) -> None:
    server = fake_embeddings()
    place.know(MANY, search={"semantic": server.url})
    _, told = place.run()
    assert "To ask them: mcpzip eval --tiers remote" in told
    assert server.requests == []
    found = place.data("--tiers", "keyword,remote")
    assert list(found["tiers"]) == ["with remote tiers", "keyword+semantic", "keyword"]
    assert found["absent"] == {}
    assert server.requests


def test_a_tool_that_can_have_no_description_costs_nothing(place: Place) -> None:
    place.know({"slack": [{"name": "open", **{f"x{n}": n for n in range(1_023)}}]})
    (miss,) = place.data("--queries", place.asks("flibbertigibbet\tslack__open"))["misses"]
    assert miss["changes"] == []
