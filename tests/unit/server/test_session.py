"""A client's conversation: whatever it says, each request gets exactly one answer, and the talk goes on."""

from collections.abc import Callable

import pytest
from helpers.session_client import (
    HELLO,
    INVALID_PARAMS,
    INVALID_REQUEST,
    META,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    STAMP,
    UNSUPPORTED,
    Json,
    Talk,
)
from hypothesis import given, settings
from hypothesis import strategies as st

# Opening


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        *[(version, version) for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")],
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
def test_initialize_agrees_on_a_version(asked: str, given: str) -> None:
    result = Talk().asks("initialize", {**HELLO, "protocolVersion": asked})["result"]
    assert result["protocolVersion"] == given
    assert result["serverInfo"]["name"] == "mcpzip"
    assert "shop" in result["instructions"]
    assert result["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "completions": {},
        "logging": {},
    }


def test_the_modern_era_needs_no_handshake() -> None:
    talk = Talk()
    talk.modern = True
    talk.goes_on()


def test_discover_says_what_modern_clients_need() -> None:
    result = Talk().asks("server/discover", {"_meta": STAMP})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert result["ttlMs"] >= 0
    assert result["cacheScope"] in ("private", "public")
    assert result["_meta"][f"{META}serverInfo"]["name"] == "mcpzip"


def test_only_modern_results_are_stamped() -> None:
    legacy = Talk().begun().asks("tools/list")["result"]
    assert legacy.keys() == {"tools"}
    modern = Talk().begun_modern().asks("tools/list", {"_meta": STAMP})["result"]
    assert {"tools", "resultType", "ttlMs", "cacheScope", "_meta"} == modern.keys()
    assert modern["tools"] == legacy["tools"]


def test_ping_needs_no_handshake_in_the_legacy_era() -> None:
    assert Talk().asks("ping")["result"] == {}
    assert Talk().begun().asks("ping")["result"] == {}


def test_initialize_again_is_answered_alike() -> None:
    """Bridges that put several clients on one process do that."""
    talk = Talk().begun()
    assert talk.asks("initialize", HELLO, id=2)["result"] == Talk().asks("initialize", HELLO)["result"]
    talk.goes_on()


def test_a_failed_initialize_settles_nothing() -> None:
    """It made the connection a legacy one."""
    talk = Talk()
    assert talk.asks("initialize", {})["error"]["code"] == INVALID_PARAMS
    talk.begun_modern().goes_on()


def test_a_refused_version_settles_nothing() -> None:
    talk = Talk()
    error = talk.asks("server/discover", {"_meta": {**STAMP, f"{META}protocolVersion": "2099-01-01"}})[
        "error"
    ]
    assert error["code"] == UNSUPPORTED
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}
    talk.begun().goes_on()


# What is wrong


def modern(method: str, meta: object = STAMP, **params: object) -> tuple[str, Json]:
    return method, {**params, "_meta": meta}


@pytest.mark.parametrize(
    ("begin", "method", "params", "code"),
    [
        (Talk, "tools/list", None, INVALID_REQUEST),
        (Talk, "tools/call", {"name": "search_tools"}, INVALID_REQUEST),
        (Talk, "no/such/method", None, INVALID_REQUEST),
        (Talk, "initialize", {}, INVALID_PARAMS),
        (Talk, "initialize", {"protocolVersion": 5}, INVALID_PARAMS),
        (Talk, "server/discover", None, INVALID_PARAMS),
        (Talk, "server/discover", {"_meta": {f"{META}protocolVersion": "2026-07-28"}}, INVALID_PARAMS),
        (Talk, "server/discover", {"_meta": {f"{META}clientCapabilities": {}}}, INVALID_PARAMS),
        (Talk, *modern("tools/list", {**STAMP, f"{META}protocolVersion": "2025-11-25"}), UNSUPPORTED),
        (Talk, *modern("ping"), METHOD_NOT_FOUND),
        (Talk().begun, "tasks/list", None, METHOD_NOT_FOUND),
        (Talk().begun, "subscriptions/listen", {}, METHOD_NOT_FOUND),
        (Talk().begun, "tools/call", {}, INVALID_PARAMS),
        (Talk().begun, "", None, METHOD_NOT_FOUND),
        (Talk().begun, "tools/list", {"cursor": ""}, INVALID_PARAMS),
        (Talk().begun, "tools/list", {"cursor": "page-2"}, INVALID_PARAMS),
        (Talk().begun, *modern("tools/list"), INVALID_REQUEST),
        (Talk().begun, *modern("server/discover"), INVALID_REQUEST),
        (Talk().begun, "server/discover", None, INVALID_PARAMS),
        (Talk().begun_modern, "tools/list", None, INVALID_PARAMS),
        (Talk().begun_modern, "ping", None, INVALID_PARAMS),
        (Talk().begun_modern, "initialize", HELLO, INVALID_REQUEST),
        (Talk().begun_modern, *modern("initialized"), METHOD_NOT_FOUND),
        (Talk().begun_modern, *modern("logging/setLevel"), METHOD_NOT_FOUND),
        (Talk().begun_modern, *modern("tools/list", {**STAMP, f"{META}protocolVersion": "x"}), UNSUPPORTED),
    ],
)
def test_a_wrong_request_is_an_error_and_no_more(
    begin: Callable[[], Talk], method: str, params: Json | None, code: int
) -> None:
    talk = begin()
    error = talk.asks(method, params, id=77)["error"]
    assert error["code"] == code
    assert error["message"]
    if begin is Talk:
        talk = talk.begun() if code != METHOD_NOT_FOUND else talk.begun_modern()
    talk.goes_on()


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (b"hello", None, PARSE_ERROR),
        (b"{", None, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"', None, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":"\xff"}}', 5, PARSE_ERROR),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":NaN}}', None, PARSE_ERROR),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping"}]', None, INVALID_REQUEST),
        (b"[]", None, INVALID_REQUEST),
        (b"5", None, INVALID_REQUEST),
        (b'"ping"', None, INVALID_REQUEST),
        (b'{"jsonrpc":"1.0","id":5,"method":"ping"}', 5, INVALID_REQUEST),
        (b'{"id":5,"method":"ping"}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5,"method":7}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":"x"}', 5, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":[5],"method":"ping"}', None, INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":5.5,"method":"ping"}', 5.5, INVALID_REQUEST),
        (b'{"a":' * 100_000, None, PARSE_ERROR),
    ],
)
def test_a_wrong_line_is_an_error_and_no_more(line: bytes, id: object, code: int) -> None:
    talk = Talk().begun()
    (answer,) = talk.says(line + b"\n")
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == id
    assert answer["error"]["code"] == code
    talk.goes_on()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" \t\r",
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{"x":[1]}}',
        b'{"jsonrpc":"2.0","method":"tools/list"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
        b'{"jsonrpc":"2.0","id":3,"result":{}}',
        b'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}',
    ],
)
def test_what_asks_nothing_is_not_answered(line: bytes) -> None:
    talk = Talk().begun()
    assert talk.says(line + b"\n") == []
    talk.goes_on()


@pytest.mark.parametrize(
    "id",
    [b"0", b"-0", b"7", b"-7", str(2**63).encode(), b"1" * 400, b'""', b'"a"', '"ä\U0001f600"'.encode(),
     rb'"\u0061"', rb'"\ud83d\ude00"', rb'"\ud800"', rb'"\"\\\/\n"', b'"' + b"x" * 5000 + b'"'],
)  # fmt: skip
def test_an_id_comes_back_byte_for_byte(id: bytes) -> None:
    talk = Talk()
    talk.session.receive(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % id)
    assert talk.lines == [b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % id]


@settings(max_examples=150)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_no_bytes_end_the_conversation(lines: list[bytes]) -> None:
    talk = Talk().begun()
    talk.session.receive(b"\n".join(lines) + b"\n")
    talk.goes_on()
