"""The ``store`` of a config."""

import json

import pytest

from mcpzip.config.reading import parse
from mcpzip.config.schema import Config, Secret, StoreConfig
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import redact
from mcpzip.system.sealing import MOST_KEYS

KEY, OTHER = "k" * 43 + "=", "o" * 43 + "="
ENV = {"KEY": KEY, "PW": "hush-hush", "NS": "team"}
URL = "redis://127.0.0.1:6379/0"


def config(store: object, **more: object) -> Config:
    data = {"mcpServers": {"a": {"command": "a"}}, "store": store, **more}
    return parse(json.dumps(data).encode(), "/c.json", ENV)


def read(url: object = URL, keys: object = ("${KEY}",), **more: object) -> StoreConfig | None:
    return config({"url": url, "keys": keys, **more}).store


def test_what_is_read() -> None:
    assert config(None).store is None
    assert read() == StoreConfig(URL, (Secret(KEY),), "mcpzip")
    found = read("rediss://u:${PW}@h/1", [OTHER, "${KEY}"], namespace="${NS}", _why="note")
    assert found == StoreConfig("rediss://u:hush-hush@h/1", (Secret(OTHER), Secret(KEY)), "team")
    for url in ("postgresql://h/db?sslmode=verify-full", "postgres:///db", "redis://[::1]"):
        assert read(url) == StoreConfig(url, (Secret(KEY),))


def test_its_secrets_are_redacted() -> None:
    assert "hush" not in repr(read("postgresql://u:${PW}@h/db"))
    assert "hush-hush" not in redact("FATAL: hush-hush is wrong")
    assert KEY not in redact(f"key {KEY}")


@pytest.mark.parametrize(
    ("url", "keys", "found"),
    [
        (None, [KEY], "there is no url"),
        (URL, None, "there are no keys"),
        (5, [KEY], "store.url: found a number"),
        ("", [KEY], "empty"),
        ("${NONE}", [KEY], "variable NONE is not set"),
        ("http://h", [KEY], "found no URL of a store"),
        ("redis://h:x", [KEY], "found no URL of a store"),
        ("redis://h h", [KEY], "found no URL of a store"),
        ("redis:///0", [KEY], "without a host"),
        ("redis://u:p#q@h", [KEY], "found no URL of a store|fragment"),
        (URL, [], "found no list with a key"),
        (URL, KEY, "found no list with a key"),
        (URL, ["short"], r"store.keys\[0\]: this is no key"),
        (URL, [KEY, "${NONE}"], "variable NONE is not set"),
        (URL, [KEY, KEY.rstrip("=")], "a key is there twice"),
        (URL, [KEY] * (MOST_KEYS + 1), f"found {MOST_KEYS + 1} keys"),
    ],
)
def test_what_is_refused_says_what_to_write(url: object, keys: object, found: str) -> None:
    with pytest.raises(ConfigError, match=found) as caught:
        read(url, keys)
    assert caught.value.remedy
    assert KEY not in str(caught.value)


def test_nothing_in_it_is_ignored() -> None:
    with pytest.raises(ConfigError, match="there is no such key"):
        read(ttl=5)
    for namespace in ("", "a b", "{a}", "x" * 65, 5):
        with pytest.raises(ConfigError, match=r"store\.namespace"):
            read(namespace=namespace)
    with pytest.raises(ConfigError, match="found no object"):
        config("redis://h")
    with pytest.raises(ConfigError, match=r"auth\.store"):
        config({"url": URL, "keys": [KEY]}, auth={"store": "keyring"})
