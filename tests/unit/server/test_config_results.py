"""What is answered from the config before mcpzip is loaded is what the session would answer."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.catalog import Catalog
from mcpzip.config import reading
from mcpzip.config.watched_file import WatchedFile
from mcpzip.model.errors import ConfigError
from mcpzip.proxy.proxy import Proxy
from mcpzip.server import config_results, handshake_cache
from mcpzip.server.early_handshake import known_results
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.stdio import cache_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpzip.server.handshake_cache import HandshakeCache

ECHO = {"command": "never-run"}


def of_the_session(path: Path, project: str = "", *, required: bool = True) -> "HandshakeCache | None":
    """What the whole proxy answers; None if the config can't be used, or an upstream has to be asked."""
    try:
        config = WatchedFile(str(path), {}, project).load(required=required)
    except ConfigError:
        return None
    results = Endpoint(Proxy(config, Catalog(), environment={})).handshake_results()
    return None if results is None else cache_of(results, [])


def of_the_config(path: Path, project: str = "", *, required: bool = True) -> "HandshakeCache | None":
    return known_results(str(path), project, required=required)


def text(results: "HandshakeCache") -> str:
    """All that a client could see of it, in its order."""
    return json.dumps({**results, "stamp": []}, ensure_ascii=False)


def written(folder: Path, content: object) -> Path:
    path = folder / "config.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"mcpServers": None},
        {"mcpServers": {}},
        {"mcpServers": {"slack": ECHO, "git.hub": {"url": "https://example.com/${TOKEN}"}, "a_b-1": ECHO}},
        {"mcpServers": {"off": {**ECHO, "disabled": True}, "on": {**ECHO, "disabled": "yes"}, "no": None}},
        {"mcpServers": {"bad__name": ECHO, "_": ECHO, "": ECHO, "ä": ECHO, "good": 5, "both": {"url": "x"}}},
        {"mcpServers": {f"server-{number}": ECHO for number in range(400)}},
        {"mcpServers": {"a": {**ECHO, "pin": ["x"]}}},
        {"mcpServers": {"a": {**ECHO, "pin": []}, "b": {**ECHO, "pin": ["x"], "disabled": True}}},
        {"mcpServers": {"a": ECHO}, "expose": "meta", "search": {"default_limit": 7, "semantic": "off"}},
        {"mcpServers": {"a": ECHO}, "search": {"default_limit": 99}},
        {"mcpServers": {"a": ECHO, "b": ECHO}, "expose": "direct"},
        {"mcpServers": {"a": ECHO, "b": ECHO}, "expose": {"split": True}},
        {
            "mcpServers": {"a": ECHO},
            "expose": {"mode": "meta", "split": True},
            "search": {"default_limit": 7},
        },
        {"mcpServers": {"a": {**ECHO, "pin": ["x"]}}, "expose": {"split": True}},
        {"mcpServers": {"a": ECHO}, "expose": {"mode": "direct", "split": False}},
        {"mcpServers": {"a": ECHO}, "expose": {"mode": None, "split": None}},
        {"mcpServers": {}, "expose": {}},
        {"mcpServers": {"a": ECHO}, "expose": None, "search": None, "unknown": [1], "_note": "x"},
        {"mcpServers": {"a": ECHO}, "shared": False, "daemon": {"idle_minutes": 0}, "log": {"level": "off"}},
        {"mcpServers": {"a": ECHO}, "inheritEnv": ["A*"], "auth": {"store": "file"}, "gemini_api_key": "k"},
        {"mcpServers": {"a": ECHO}, "idle_timeout_minutes": 1, "call_timeout_seconds": 0.5},
        {"mcpServers": {"a": {**ECHO, "policy": "no"}}, "policy": "ask", "audit": True},
        {"mcpServers": {"a": ECHO}, "results": "off"},
        {"mcpServers": {"a": ECHO}, "results": {"keep": 500}},
        {"mcpServers": {"a": ECHO}, "policy": {"default": "ask", "reads": None, "reaches_out": "deny"}},
    ],
)
def test_a_plain_config_is_answered_with_the_same_bytes(content: object, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    ours, session = of_the_config(path), of_the_session(path)
    assert ours is not None
    assert session is not None
    assert text(ours) == text(session)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"mcpServers": {}, "mcpServers": {}}',
        b'{"mcpServers": {"a": {"command": "x", "command": "y"}}}',
        b"\xff{}",
        {"mcpServers": []},
        {"mcpServers": {"a": ECHO}, "search": {"default_limit": 0}},
        {"mcpServers": {"a": ECHO}, "search": {"default_limit": "7"}},
        {"mcpServers": {"a": ECHO}, "search": 5},
        {"mcpServers": {"a": ECHO}, "expose": "all"},
        {"mcpServers": {"a": ECHO}, "expose": {"mode": "all"}},
        {"mcpServers": {"a": ECHO}, "expose": {"split": 1}},
        {"mcpServers": {"a": ECHO}, "expose": {"mode": "direct", "split": True}},
        {"mcpServers": {"a": ECHO}, "shared": "no"},
        {"mcpServers": {"a": ECHO}, "call_timeout_seconds": 0},
        {"mcpServers": {"a": ECHO}, "daemon": {"idle_minutes": -1}},
        {"mcpServers": {"a": ECHO}, "log": {"level": "loud"}},
        {"mcpServers": {"a": ECHO}, "auth": {"store": "cloud"}},
        {"mcpServers": {"a": ECHO}, "gemini_api_key": 5},
        {"mcpServers": {"a": ECHO}, "inheritEnv": [5]},
        {"mcpServers": {"a": ECHO, "b": ECHO}, "expose": "transparent"},
        {"mcpServers": {"a": ECHO}, "expose": "transparent"},
        {"mcpServers": {"a": ECHO}, "policy": "maybe"},
        {"mcpServers": {"a": ECHO}, "policy": {"write": "deny"}},
        {"mcpServers": {"a": ECHO}, "policy": {"tools": {"merge": "deny"}}},
        {"mcpServers": {"a": ECHO}, "audit": 5},
        {"mcpServers": {"a": ECHO}, "results": "on"},
        {"mcpServers": {"a": ECHO}, "results": 499},
        {"mcpServers": {"a": ECHO}, "results": {"keep": True}},
        {"mcpServers": {"a": ECHO}, "results": {"tools": {"read": 900}}},
    ],
)
def test_what_the_session_refuses_or_has_to_ask_for_is_not_answered(content: object, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    assert of_the_session(path) is None
    assert of_the_config(path) is None


@pytest.mark.parametrize("content", [None, b"", b" \n"])
def test_a_missing_config_has_no_servers_unless_somebody_named_it(
    content: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "config.json" if content is None else written(tmp_path, content)
    ours, session = (find(path, required=False) for find in (of_the_config, of_the_session))
    assert ours is not None
    assert session is not None
    assert text(ours) == text(session)
    assert of_the_config(path) is of_the_session(path) is None


def test_every_key_of_a_config_is_looked_at() -> None:
    assert sorted(config_results._CHECKS) == sorted(reading.KEYS)


def test_with_a_project_the_session_answers(tmp_path: Path) -> None:
    path = written(tmp_path, {"mcpServers": {"a": ECHO}})
    assert of_the_config(path) is not None
    assert of_the_config(path, str(tmp_path / ".mcpzip.json")) is None


def test_what_is_cached_is_used_first(tmp_path: Path) -> None:
    path = written(tmp_path, {"mcpServers": {"a": ECHO}})
    made = of_the_config(path)
    assert made is not None
    handshake_cache.write(str(path), {**made, "initialize": {"cached": True}})
    found = of_the_config(path)
    assert found is not None
    assert found["initialize"] == {"cached": True}


VALUES = st.sampled_from(
    [
        *(
            None,
            True,
            False,
            0,
            1,
            5,
            7.0,
            50,
            51,
            100,
            1e9,
            -1,
            "",
            "a",
            "meta",
            "direct",
            "transparent",
            "${X}",
        ),
        *("local", "onnx", "off", "debug", "file", "http://h:1/api", [], ["a"], [1], {}, {"a": 1}),
    ]
)
POLICY = st.one_of(st.sampled_from(["allow", "ask", "deny"]), VALUES)
NAMES = st.sampled_from(["a", "b-1", "c.d", "e_f", "g__h", "_i", "", "ü", "J"])
SERVERS = st.dictionaries(
    NAMES,
    st.one_of(
        VALUES,
        st.dictionaries(
            st.sampled_from(["command", "url", "disabled", "pin", "tools", "boost", "x"]), VALUES
        ),
        st.builds(
            lambda more: {**ECHO, **more}, st.dictionaries(st.sampled_from(["disabled", "pin"]), VALUES)
        ),
    ),
)
SEARCH = st.dictionaries(
    st.sampled_from(["default_limit", "max_tokens", "learn", "semantic", "details", "model", "x"]), VALUES
)
CONFIGS = st.fixed_dictionaries(
    {"mcpServers": st.one_of(SERVERS, VALUES)},
    optional={
        "search": st.one_of(SEARCH, VALUES),
        "log": st.one_of(st.builds(lambda level: {"level": level}, VALUES), VALUES),
        "policy": st.one_of(st.dictionaries(st.sampled_from(["default", "writes", "tools"]), POLICY), POLICY),
        "audit": st.one_of(st.builds(lambda path: {"path": path}, VALUES), VALUES),
        "results": st.one_of(st.dictionaries(st.sampled_from(["keep", "tools", "x"]), VALUES), VALUES),
        "daemon": st.dictionaries(st.sampled_from(["idle_minutes", "http", "x"]), VALUES),
        "auth": st.one_of(st.builds(lambda store: {"store": store}, VALUES), VALUES),
        "expose": st.one_of(st.dictionaries(st.sampled_from(["mode", "split", "x"]), VALUES), VALUES),
        **dict.fromkeys(
            [
                "trust",
                "shared",
                "inheritEnv",
                "gemini_api_key",
                "idle_timeout_minutes",
                "call_timeout_seconds",
                "y",
            ],
            VALUES,
        ),
    },
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CONFIGS)
def test_whatever_the_config_is_there_is_no_other_answer(tmp_path: Path, content: object) -> None:
    path = written(tmp_path, content)
    ours = of_the_config(path)
    if ours is not None:
        session = of_the_session(path)
        assert session is not None
        for key, value in ours.items():
            # Nothing is answered early where it is None, as with pins that may turn out to be unusable.
            assert value is None or key == "stamp" or json.dumps(value) == json.dumps(session[key])
