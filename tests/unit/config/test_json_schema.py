"""The JSON Schema knows what the reader reads: nothing that is accepted in silence is invalid."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpzip.cli.config import schema_text
from mcpzip.config import auth, http, parse, policy, reading, search, server
from mcpzip.config.json_schema import config_schema
from mcpzip.model.errors import ConfigError

ROOT = Path(__file__).parents[3]
SCHEMA = config_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def accepted(document: object) -> bool:
    """Whether the reader has nothing to say about it."""
    try:
        config = parse(json.dumps(document).encode(), "config.json", {"SET": "x"}, strict=True)
    except ConfigError:
        return False
    return not config.warnings and not any(each.problem for each in config.servers.values())


def test_it_is_a_schema_and_the_published_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert (ROOT / "docs" / "config.schema.json").read_text("utf-8") == schema_text(), (
        "mcpzip config schema > docs/config.schema.json"
    )


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        (SCHEMA, {"$schema", *reading.KEYS}),
        (SCHEMA["$defs"]["server"], {*server.KEYS, *server.OTHER_NAMES}),
        (SCHEMA["$defs"]["server"]["properties"]["tools"], set(server.TOOLS_KEYS)),
        (SCHEMA["$defs"]["auth"], {*auth.KEYS, *auth.OTHER_NAMES}),
        (SCHEMA["$defs"]["search"], set(search.KEYS)),
        (SCHEMA["$defs"]["semantic"], set(search.SEMANTIC_KEYS)),
        (SCHEMA["$defs"]["policy"], set(policy.KEYS)),
        (SCHEMA["$defs"]["audit"], set(policy.AUDIT_KEYS)),
        (SCHEMA["$defs"]["http"], set(http.KEYS)),
        (SCHEMA["$defs"]["issuer"], set(http.ISSUER_KEYS)),
        (SCHEMA["$defs"]["introspection"], set(http.INTROSPECTION_KEYS)),
        (SCHEMA["$defs"]["access"], set(http.ACCESS_KEYS)),
        (SCHEMA["$defs"]["rate_limit"], set(http.RATE_KEYS)),
        (SCHEMA["$defs"]["expose"], set(reading.EXPOSE_KEYS)),
    ],
)
def test_its_keys_are_those_of_the_reader(schema, keys):
    assert set(schema["properties"]) == keys


def test_each_key_is_described():
    rest: list[Any] = [SCHEMA]
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            for name, schema in each.get("properties", {}).items():
                assert name == "$schema" or schema.get("description") or schema["anyOf"][0].get("$ref"), name
            rest += each.values()


def test_every_config_in_the_documentation_is_valid():
    found = 0
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for block in page.read_text("utf-8").split("```json\n")[1:]:
            text = block.partition("```")[0]
            try:
                document = json.loads(text)
            except ValueError:
                continue
            if isinstance(document, dict) and accepted(document) and "mcpServers" in document:
                VALIDATOR.validate(document)
                found += 1
    assert found >= 5


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"mcpServer": {}},
        {"mcpServers": []},
        {"mcpServers": {"a": {"command": 1}}},
        {"mcpServers": {"a": {"command": "x", "args": "y"}}},
        {"mcpServers": {"a": {"command": "x", "arg": []}}},
        {"mcpServers": {"a": {"url": "https://x/", "auth": {"grant": "password"}}}},
        {"mcpServers": {"a": {"url": "https://x/", "auth": {"callback_port": 70_000}}}},
        {"mcpServers": {"a": {"command": "x", "boost": 0}}},
        {"mcpServers": {"a": {"command": "x", "type": "tcp"}}},
        {"search": {"default_limit": 51}},
        {"search": {"semantic": {"dimensions": 4.5}}},
        {"search": {"semantic": "cohere"}},
        {"expose": "all"},
        {"expose": {"mode": "all"}},
        {"expose": {"split": 1}},
        {"expose": {"spilt": True}},
        {"expose": []},
        {"call_timeout_seconds": 0},
        {"auth": {"store": "disk"}},
    ],
)
def test_mistakes_are_invalid(document):
    assert not VALIDATOR.is_valid(document)
    assert not accepted(document if isinstance(document, list) else {"mcpServers": {}, **document})


TEXTS = ["", "a", " x ", "${SET}", "${UNSET:-d}", "$${A}", "https://e.example/mcp", "\u202e"]
TEXT = st.sampled_from(TEXTS)
NUMBER = st.one_of(
    st.integers(-2, 70_000), st.floats(0, 100, allow_nan=False), st.sampled_from([0.1, 10, 1e9])
)
WORDS = [
    *TEXTS,
    *("stdio", "HTTP", "streamableHttp", "sse", "meta", "direct", "transparent", "file", "keyring", "local"),
    *("ollama", "off", "onnx", "openai", "client_credentials", "authorization_code", "ES256", "PS512"),
]
ANY = st.one_of(
    TEXT,
    st.sampled_from(WORDS),
    NUMBER,
    st.booleans(),
    st.none(),
    st.lists(st.one_of(TEXT, NUMBER), max_size=2),
    st.dictionaries(st.sampled_from(["a", "B-c", "_x"]), st.one_of(TEXT, NUMBER, st.none()), max_size=2),
)


def objects(*keys: str, **values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with some of ``keys``, each with any value, or now and then one of its own in ``values``."""
    each = {key: st.one_of(values.get(key, ANY), ANY) for key in keys}
    return st.fixed_dictionaries({}, optional={**each, "_note": ANY, "unknown": ANY})


AUTH = objects(*auth.KEYS, *auth.OTHER_NAMES)
TOOLS = objects(*server.TOOLS_KEYS)
SERVER = objects(*server.KEYS, *server.OTHER_NAMES, auth=AUTH, oauth=AUTH, tools=TOOLS)
SEMANTIC = objects(*search.SEMANTIC_KEYS)
SEARCH = objects(*search.KEYS, semantic=SEMANTIC)
SERVERS = st.dictionaries(st.sampled_from(["a", "b-c"]), SERVER, min_size=1, max_size=2)
CONFIG = objects(
    *reading.KEYS,
    mcpServers=SERVERS,
    search=SEARCH,
    auth=objects("store"),
    expose=objects(*reading.EXPOSE_KEYS),
    **{"$schema": st.text()},
)


@given(key=st.sampled_from(["mcpServers", "search", "other"]), data=st.data())
@settings(max_examples=400)
def test_whatever_is_accepted_in_silence_is_valid(key, data):
    base: dict[str, Any] = {"mcpServers": {"a": {"command": "x"}}}
    if key == "mcpServers":
        entry = {data.draw(st.sampled_from(["command", "url"])): data.draw(TEXT), **data.draw(SERVER)}
        document = {"mcpServers": {"a": entry}}
    elif key == "search":
        document = {**base, "search": data.draw(SEARCH)}
    else:
        document = {**base, **data.draw(CONFIG)}
    if accepted(document):
        VALIDATOR.validate(document)


def each_value() -> list[tuple[tuple[str, ...], str]]:
    """The keys of every object, with the way to it."""
    found = [((), key) for key in reading.KEYS if key != "mcpServers"]
    found += [(("mcpServers", "a"), key) for key in (*server.KEYS, *server.OTHER_NAMES)]
    found += [(("mcpServers", "a", "auth"), key) for key in (*auth.KEYS, *auth.OTHER_NAMES)]
    found += [(("mcpServers", "a", "tools"), key) for key in server.TOOLS_KEYS]
    found += [(("search",), key) for key in search.KEYS]
    found += [(("expose",), key) for key in reading.EXPOSE_KEYS]
    found += [(("search", "semantic"), key) for key in search.SEMANTIC_KEYS]
    return found


@pytest.mark.parametrize(("way", "key"), each_value())
@given(value=ANY)
@settings(max_examples=30)
def test_one_value_that_is_accepted_is_valid(way, key, value):
    for entry in ({"command": "x"}, {"url": "https://e.example/mcp"}):
        document: dict[str, Any] = {"mcpServers": {"a": dict(entry)}}
        inner = document
        for step in way:
            inner = inner.setdefault(step, {})
        if key == "dimensions" or (way == ("search", "semantic") and key not in ("provider", "url")):
            inner["provider"] = "openai"
        inner[key] = value
        if accepted(document):
            VALIDATOR.validate(document)
