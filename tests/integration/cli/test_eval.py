"""`mcpzip eval`: requests from the catalog or a file, searched as an agent would."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.driver import Json, write_config
from mcpzip_fakes.launch import FakeServer

from mcpzip.cli.commands import run

Fake = Callable[..., FakeServer]
Capture = pytest.CaptureFixture[str]

TOOLS: list[Json] = [
    {"name": "pay_invoice", "description": "Pay an open invoice of a supplier by bank transfer"},
    {"name": "send_message", "description": "Send a message to a channel or to one person"},
    {"name": "x1", "description": "x1"},
    {"name": "archive_channel", "description": "Close a channel; nobody can write to it any more"},
]


@pytest.fixture
def shop(fake_mcp: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shop = fake_mcp(name="shop", tools=TOOLS)
    twin = fake_mcp(name="twin", tools=TOOLS[:1])
    monkeypatch.setenv("MCPZIP_CONFIG", str(write_config(tmp_path, shop, twin)))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def test_it_measures_each_kind_and_names_what_search_cant_tell_apart(shop: Path, capsys: Capture) -> None:
    assert run(["eval"]) == 0
    shown = capsys.readouterr().out
    assert all(
        kind in shown for kind in ("name", "misspelled", "other verb", "description", "all, by words only")
    )
    assert "so search can't choose: shop__pay_invoice = twin__pay_invoice" in shown
    assert "Descriptions that say nothing beyond the name: shop__x1" in shown
    assert run(["eval", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["count"] == sum(each["count"] for each in found["kinds"].values())
    assert found["kinds"]["name"]["recall"] == 1.0
    assert set(found["servers"]) == {"shop", "twin"}


def test_your_own_requests_and_what_would_help(shop: Path, capsys: Capture) -> None:
    file = shop / "requests.jsonl"
    lines = [
        {"query": "settle what we owe", "tools": ["shop__pay_invoice"]},
        {"query": "zzqx grommet", "tools": ["shop__x1"]},
        {"query": "tell a person", "tools": ["shop__send_message", "shop__archive_channel"]},
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    assert run(["eval", "--queries", str(file), "--min-recall", "0.99"]) == 1
    shown = capsys.readouterr().out
    assert "shop__x1: not among the first 50 for “zzqx grommet”" in shown
    assert "with zzqx, grommet in its description it would be at place 1" in shown
    assert '"pin": ["x1"] for the server shop' in shown
    assert run(["eval", "--queries", str(file), "--server", "twin"]) == 1
    assert "no request" in capsys.readouterr().err


def test_saved_requests_are_read_again(shop: Path, capsys: Capture) -> None:
    file = shop / "saved.jsonl"
    assert run(["eval", "--json", "--save", str(file)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert run(["eval", "--json", "--queries", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["all"] == made["all"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "a"}', "line 2: Object missing required field `tools`. Write {"),
        ("nonsense", "line 2: JSON is malformed"),
        ('{"query": " ", "tools": ["shop__x1"]}', "line 2: it needs a query"),
        (
            '{"query": "a", "tools": ["shop__x2"]}',
            "line 2: there is no tool 'shop__x2'. Did you mean shop__x1?",
        ),
    ],
)
def test_a_wrong_line_is_named(shop: Path, capsys: Capture, line: str, message: str) -> None:
    file = shop / "requests.jsonl"
    file.write_text('{"query": "a", "tools": ["shop__x1"]}\n' + line + "\n")
    assert run(["eval", "--queries", str(file)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_file_is_a_sentence(shop: Path, capsys: Capture) -> None:
    assert run(["eval", "--queries", str(shop / "none")]) == 2
    assert "none can't be read: No such file" in capsys.readouterr().err
