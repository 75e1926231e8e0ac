"""`mcpzip keys`: keys that are printed once, and a file that has only their hashes."""

import json
import os
import stat
import time
from pathlib import Path

import pytest
from helpers.driver import run_here

from mcpzip.identity.api_keys import ApiKeys, KeysError, new_key, read_keys
from mcpzip.identity.errors import TokenError
from mcpzip.model.principal import Principal


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"mcpServers": {}, "http": {"api_keys": "team/keys.json"}}), "utf-8")
    return path


def keys(config: Path, *words: str) -> tuple[int, str, str]:
    done = run_here("keys", *words, "--config", str(config))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def verify(config: Path, key: str) -> Principal:
    return ApiKeys(str(config.parent / "team" / "keys.json"), lambda warning: None).verify(key)


def test_a_key_is_printed_once_and_is_nowhere_else(config: Path) -> None:
    code, out, said = keys(config, "add", "ann", "--group", "dev", "--group", "ops", "--scope", "mcp")
    assert (code, out.count("\n")) == (0, 1)
    key = out.strip()
    assert "not shown again" in said
    assert verify(config, key) == Principal(
        "mcpzip:api-keys", "ann", "ann", frozenset({"dev", "ops"}), frozenset({"mcp"})
    )
    path = config.parent / "team" / "keys.json"
    secret = key[len("mcpzip_k01234567_") :]  # not what follows the last "_": a secret may contain one
    assert len(secret) == 43
    for file in path.parent.iterdir():
        assert secret not in file.read_text("utf-8")
    if os.name != "nt":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)  # it is closed again when it is read
        assert len(read_keys(str(path))) == 1
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_they_are_listed_without_themselves_and_removed(config: Path) -> None:
    first = keys(config, "add", "ann")[1].strip()
    second = keys(config, "add", "ann", "--expires", "90d")[1].strip()
    third = keys(config, "add", "bob")[1].strip()
    code, text, _ = keys(config, "list")
    assert code == 0
    assert [text.count(name) for name in ("ann", "bob", "never")] == [2, 1, 2]
    listed = json.loads(keys(config, "list", "--json")[1])
    assert [each["name"] for each in listed] == ["ann", "ann", "bob"]
    assert listed[1]["until"] - listed[1]["at"] == pytest.approx(90 * 86_400)
    assert all(each not in text + json.dumps(listed) for each in (first, second, third))
    assert keys(config, "remove", listed[0]["id"])[0] == 0
    with pytest.raises(TokenError):
        verify(config, first)
    assert verify(config, second).subject == "ann"
    assert keys(config, "remove", "ann")[0] == 0
    assert [each["name"] for each in json.loads(keys(config, "list", "--json")[1])] == ["bob"]
    code, _, said = keys(config, "remove", "ann")
    assert (code, "There is no key 'ann'" in said) == (2, True)
    keys(config, "remove", "bob")
    assert "There are no keys" in keys(config, "list")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", " "), "This name is empty"),
        (("add", "a\x1b[2J"), "can't be shown"),
        (("add", "x" * 300), "too long"),
        (("add", "ann", "--group", ""), "This group is empty"),
        (("add", "ann", "--scope", "a b"), "is no scope"),
        (("add", "ann", "--expires", "soon"), "'soon' is no time"),
        (("add", "ann", "--expires", "0d"), "'0d' is no time"),
    ],
)
def test_mistakes(config: Path, words: tuple[str, ...], said: str) -> None:
    code, out, errors = keys(config, *words)
    assert (code, out) == (2, "")
    assert said in errors
    assert "\x1b" not in errors


def test_the_config_says_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"mcpServers": {}}', "utf-8")
    code, _, said = keys(path, "add", "ann")
    assert code == 2
    assert '"http": {"api_keys": "keys.json"}' in said


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format":"other","version":1}',
        '{"format":"mcpzip-api-keys","version":2,"keys":[]}',
        '{"format":"mcpzip-api-keys","version":1,"keys":[{"id":"k1","name":"a","sha256":"é"}]}',
        '{"format":"mcpzip-api-keys","version":1,"keys":[{"id":"k01234567","name":"a","sha256":"é"}]}',
        '{"format":"mcpzip-api-keys","version":1,"keys":7}',
    ],
)
def test_a_file_that_cannot_be_used_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content, "utf-8")
    with pytest.raises(KeysError, match="no API key is valid"):
        read_keys(str(path))
    with pytest.raises(KeysError):
        new_key(str(path), "ann", [], [], time.time(), None)
    assert path.read_text("utf-8") == content
