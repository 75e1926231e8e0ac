"""`mcpzip search`: why it found what it found; several needs; what finds by meaning; the same tool twice."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, run, write_config
from mcpzip_fakes.embeddings import FakeEmbeddings
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.pytest_plugin import fake_embeddings as fake_embeddings

from mcpzip.cli import console
from mcpzip.cli.commands import run as run_here

Fake = Callable[..., FakeServer]
Capture = pytest.CaptureFixture[str]

READS: Json = {"readOnlyHint": True}
SEND: Json = {
    "server": "slack",
    "name": "send_message",
    "description": "Send a message to a channel",
    "inputSchema": {"type": "object", "properties": {"channel": {"type": "string"}}},
}
TOOLS: list[Json] = [
    SEND,
    {**SEND, "server": "backup"},
    {"server": "slack", "name": "list_channels", "description": "List the channels", "annotations": READS},
    {"server": "disk", "name": "read_file", "description": "Read a file from the disk", "annotations": READS},
    {"server": "bank", "name": "pay_invoice", "description": "Pay an [open] invoice"},
]


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(console._out, "width", 200)
    monkeypatch.setenv("MCPZIP_CONFIG", str(tmp_path / "config.json"))
    path = tmp_path / "tools.jsonl"
    path.write_text("\n".join(map(json.dumps, TOOLS)))
    return str(path)


def searched(capsys: Capture, *words: str) -> str:
    assert run_here(["search", *words]) == 0
    return capsys.readouterr().out


def found(capsys: Capture, *words: str) -> Json:
    told = json.loads(searched(capsys, *words, "--json"))
    assert isinstance(told, dict)
    return told


def names(told: Json) -> list[str]:
    return [row["name"] for row in told["results"]]


def test_it_explains_itself_to_people(catalog: str, capsys: Capture) -> None:
    shown = searched(capsys, "pay invioce", "--catalog", catalog, "--explain", "--semantic", "off")
    for part in ("bank__pay_invoice", "name 0.", "description 0.", "pay", "tiers: keyword"):
        assert part in shown
    assert "read: 'invioce' as 'invoice'" in shown


def test_it_explains_itself_to_programs(catalog: str, capsys: Capture) -> None:
    query = 'server:bank pay invioce "open invoice" -draft'
    told = found(capsys, query, "--catalog", catalog, "--explain")
    (first,) = told["results"]
    assert (first["rank"], first["name"], first["tier"]) == (1, "bank__pay_invoice", "keyword")
    assert {"pay", "invoice"} <= set(first["matched"])
    assert set(first["fields"]) >= {"name", "description"}
    assert 0 < sum(first["fields"].values()) <= first["words"] + 1e-3
    assert -1 <= first["similarity"] <= 1
    assert told["corrected"] == [{"written": "invioce", "read": "invoice"}]
    assert told["query"] == {
        "text": "pay invioce open invoice",
        "servers": ["bank"],
        "without": ["draft"],
        "phrases": ["open invoice"],
        "read_only": None,
    }
    assert told["tiers"] == ["keyword", "semantic"]


def test_without_being_asked_it_explains_nothing(catalog: str, capsys: Capture) -> None:
    (first, *_) = found(capsys, "pay invoice", "--catalog", catalog)["results"]
    assert not {"rank", "matched", "fields"} & first.keys()
    assert first["description"] == "Pay an [open] invoice"
    assert "Pay an [open] invoice" in searched(capsys, "pay invoice", "--catalog", catalog)


def test_a_query_of_unknown_words_is_explained_too(catalog: str, capsys: Capture) -> None:
    assert run_here(["search", "xyzzy", "--catalog", catalog, "--explain", "--semantic", "off"]) == 1
    captured = capsys.readouterr()
    assert "no tool knows: 'xyzzy'" in captured.out
    assert "Nothing found in 5 tools." in captured.err


def test_several_needs_are_shown_apart(catalog: str, capsys: Capture) -> None:
    query = "read the file and send a message to the channel"
    told = found(capsys, query, "--catalog", catalog)
    needs = [need["need"] for need in told["needs"]]
    assert needs == ["read the file", "send a message to the channel"]
    best = {row["need"]: row["name"] for row in reversed(told["results"])}
    assert [best[need] for need in needs] == ["disk__read_file", "slack__send_message"]
    for how in ([], ["--explain"], ["--as-model"]):
        shown = searched(capsys, query, "--catalog", catalog, *how)
        assert shown.index('for "read the file"') < shown.index("disk__read_file")
        assert shown.index("disk__read_file") < shown.index('for "send a message')
        assert shown.index('for "send a message') < shown.index("slack__send_message")


def test_the_same_tool_on_another_server_is_a_note(catalog: str, capsys: Capture) -> None:
    (first, *_) = found(capsys, "send message", "--catalog", catalog)["results"]
    assert (first["name"], first["also"]) == ("backup__send_message", ["slack__send_message"])
    assert "also slack__send_message" in searched(capsys, "send message", "--catalog", catalog)


def test_a_batch_names_every_one_of_them(catalog: str) -> None:
    queries = [{"id": 1, "query": "send message", "k": 5}, {"id": 2, "query": "send message", "k": 1}]
    done = run("search", "--catalog", catalog, "--batch", stdin="\n".join(map(json.dumps, queries)).encode())
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["names"][:2] == ["backup__send_message", "slack__send_message"]
    assert len(first["names"]) <= 5
    assert second["names"] == ["backup__send_message"]


def test_tools_that_change_nothing_and_the_others(catalog: str, capsys: Capture) -> None:
    asked = ("channels message file", "--catalog", catalog)
    assert set(names(found(capsys, *asked, "--read-only"))) == {"slack__list_channels", "disk__read_file"}
    assert not {"slack__list_channels", "disk__read_file"} & set(names(found(capsys, *asked, "--writes")))


# What finds by meaning


def test_it_can_be_named_for_one_run(catalog: str, capsys: Capture, fake_embeddings: object) -> None:
    asked = ("pay invoice", "--catalog", catalog)
    assert found(capsys, *asked, "--semantic", "off")["tiers"] == ["keyword"]
    assert found(capsys, *asked, "--semantic", "local")["tiers"] == ["keyword", "semantic"]
    assert callable(fake_embeddings)
    server: FakeEmbeddings = fake_embeddings()
    told = found(capsys, *asked, "--semantic", f"{server.url}/api")
    assert told["tiers"] == ["keyword", "semantic (ollama)"]
    assert server.texts[-1].endswith("pay invoice")
    vectors = Path(catalog).parent / "cache" / "tools.jsonl.embeddings.bin"
    assert vectors.exists()


def test_one_that_is_away_is_told(catalog: str, capsys: Capture) -> None:
    away = "http://127.0.0.1:9/v1"
    told = found(capsys, "pay invoice", "--catalog", catalog, "--semantic", away)
    assert told["tiers"] == ["keyword", "semantic"]
    (absent,) = told["absent"]
    assert absent["method"] == "openai"
    assert absent["reason"]
    assert f"absent: semantic (openai): {absent['reason']}" in searched(
        capsys, "pay invoice", "--catalog", catalog, "--semantic", away, "--explain"
    )
    queries = b'{"query":"pay"}\n{"query":"send"}\n'
    done = run("search", "--catalog", catalog, "--batch", "--semantic", away, stdin=queries)
    assert done.returncode == 0
    assert done.stderr.count(b"semantic (openai) is absent") >= 1
    assert json.loads(done.stdout.splitlines()[0])["names"][0] == "bank__pay_invoice"


@pytest.mark.parametrize("said", ["magic", "ftp://example.com", "http://"])
def test_one_that_is_none_is_a_wrong_request(catalog: str, capsys: Capture, said: str) -> None:
    assert run_here(["search", "pay", "--catalog", catalog, "--semantic", said]) == 2
    assert "--semantic" in capsys.readouterr().err


# With servers


def test_with_servers_it_explains_as_well(
    fake_mcp: Fake, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shop = fake_mcp(name="shop", tools=[{"name": "pay_invoice", "description": "Pay an invoice"}])
    config = write_config(tmp_path, shop)
    told = json.loads(config.read_text())
    told["mcpServers"]["shop"]["boost"] = 1.5
    config.write_text(json.dumps(told))
    asked = ("pay an invoice now", "-c", str(config))
    (first, *_) = found(capsys, *asked, "--explain")["results"]
    assert first["moved"] == {"boost": 1.5}
    assert "boost ×1.5" in searched(capsys, *asked, "--explain")
    assert found(capsys, *asked, "--semantic", "off")["tiers"] == ["keyword"]
