import json
from collections.abc import Callable

import pytest
from helpers.json_texts import objects, patient, values
from hypothesis import given

from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    REQUEST_KEYS,
    Era,
    NotAnObject,
    Opening,
    RpcError,
    initialize_params,
    modern_meta,
    negotiate,
    progress_token,
    read_opening,
    split_object,
    stamp_request,
    stamp_result,
    unstamp_request,
    unsupported_version_error,
    with_progress_token,
    without_progress_token,
)

INFO = b'{"name":"a","version":"1"}'
CAPABILITIES = b'{"sampling":{}}'
STAMP = (
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},'
    b'"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}'
)


def stamped(params: bytes | None, log_level: str | None = None) -> bytes:
    return stamp_request(params, MODERN_VERSION, INFO, CAPABILITIES, log_level)


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_a_legacy_version_is_granted(version: str) -> None:
    assert negotiate(version) == version


@pytest.mark.parametrize("version", [MODERN_VERSION, "1.0", "", "2024-11-5"])
def test_for_any_other_version_the_newest_legacy_one_is_offered(version: str) -> None:
    assert negotiate(version) == LATEST_LEGACY_VERSION == "2025-11-25"


def test_a_legacy_client_opens_with_initialize() -> None:
    params = initialize_params("2025-06-18", INFO, CAPABILITIES)
    assert json.loads(params) == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"sampling": {}},
        "clientInfo": {"name": "a", "version": "1"},
    }
    assert read_opening("initialize", params) == Opening(Era.LEGACY, "2025-06-18", INFO, CAPABILITIES)
    assert read_opening("initialize", stamped(params)) == Opening(
        Era.LEGACY, "2025-06-18", INFO, CAPABILITIES
    )


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "ping", "vendor/own"])
def test_a_modern_client_opens_with_any_stamped_request(method: str) -> None:
    opening = Opening(Era.MODERN, MODERN_VERSION, INFO, CAPABILITIES, None)
    assert read_opening(method, stamped(None)) == opening
    assert read_opening(method, stamped(b'{"a":1}', "debug")) == Opening(
        Era.MODERN, MODERN_VERSION, INFO, CAPABILITIES, "debug"
    )


@pytest.mark.parametrize(
    ("method", "params", "opening"),
    [
        ("ping", None, None),
        ("ping", b"{}", None),
        ("ping", b"[1]", None),
        ("tools/list", b'{"_meta":{"progressToken":1}}', None),
        ("tools/list", b'{"_meta":7}', None),
        ("initialize", None, Opening(Era.LEGACY, None, None, None)),
        ("initialize", b'{"protocolVersion":1}', Opening(Era.LEGACY, None, None, None)),
        ("server/discover", None, Opening(Era.MODERN, None, None, None)),
        (
            "tools/list",
            b'{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}',
            Opening(Era.MODERN, None, None, None),
        ),
        (
            "tools/list",
            b'{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}',
            Opening(Era.MODERN, None, None, b"{}"),
        ),
        (
            "tools/list",
            b'{"_meta":{"io.modelcontextprotocol/protocolVersion":"2031-01-01"}}',
            Opening(Era.MODERN, "2031-01-01", None, None),
        ),
    ],
)
def test_openings(method: str, params: bytes | None, opening: Opening | None) -> None:
    assert read_opening(method, params) == opening


def test_an_unsupported_version_is_answered_with_the_supported_ones() -> None:
    assert unsupported_version_error('2031"') == RpcError(
        -32022, "Unsupported protocol version", b'{"supported":["2026-07-28"],"requested":"2031\\""}'
    )


def test_the_meta_of_a_modern_request() -> None:
    assert modern_meta(MODERN_VERSION, INFO, CAPABILITIES) == b"{%b}" % STAMP
    assert modern_meta(MODERN_VERSION, INFO, CAPABILITIES, "info") == (
        b'{%b,"io.modelcontextprotocol/logLevel":"info"}' % STAMP
    )


@pytest.mark.parametrize(
    ("params", "changed"),
    [
        (None, b'{"_meta":{%b}}'),
        (b"{}", b'{"_meta":{%b}}'),
        (b'{"a":1.0}', b'{"a":1.0,"_meta":{%b}}'),
        (b'{"_meta":{ "vendor/x" : 1e400 }, "a":1}', b'{"_meta":{ "vendor/x" : 1e400,%b }, "a":1}'),
        (b'{"_meta":null}', b'{"_meta":{%b}}'),
        (b'{"_meta":[1]}', b'{"_meta":{%b}}'),
    ],
)
def test_stamping_a_request(params: bytes | None, changed: bytes) -> None:
    assert stamped(params) == changed % STAMP


def test_stamping_again_replaces_in_place() -> None:
    once = stamped(b'{"_meta":{"x":1}}', "info")
    assert stamped(once) == once
    other = stamp_request(once, "2031-01-01", b"{}", b"[]", "debug")
    assert read_opening("a", other) == Opening(Era.MODERN, "2031-01-01", b"{}", b"[]", "debug")
    assert split_object(split_object(other)["_meta"])["x"] == b"1"


@pytest.mark.parametrize(
    ("params", "changed"),
    [
        (b"{}", b"{}"),
        (b"[1]", b"[1]"),
        (b'{"_meta":{}}', b'{"_meta":{}}'),
        (b'{"_meta":7}', b'{"_meta":7}'),
        (b'{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}', b"{}"),
        (b'{"a":1 ,"_meta":{"io.modelcontextprotocol/clientInfo":{}}, "b":2}', b'{"a":1, "b":2}'),
        (
            b'{"_meta":{"vendor/x":1.0, "io.modelcontextprotocol/clientInfo":{}}}',
            b'{"_meta":{"vendor/x":1.0}}',
        ),
        (
            b'{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}',
            b'{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}',
        ),
    ],
)
def test_unstamping_a_request(params: bytes, changed: bytes) -> None:
    assert unstamp_request(params) == changed


@patient
@given(objects)
def test_unstamping_undoes_stamping(params: bytes) -> None:
    fields = split_object(params)
    meta = fields.get("_meta", b"")
    again = split_object(unstamp_request(stamped(params, "info")))
    if meta.startswith(b"{") and split_object(meta):
        assert split_object(again.pop("_meta")) == split_object(fields.pop("_meta"))
    else:
        fields.pop("_meta", None)
    assert again == fields


@patient
@given(objects, values)
def test_stamping_disturbs_nothing_else(params: bytes, vendor: bytes) -> None:
    with_vendor = b'{"_meta":{"vendor/x":%b},"y":%b}' % (vendor, params)
    fields = split_object(stamped(with_vendor))
    assert fields["y"] == params
    meta = split_object(fields["_meta"])
    assert meta.pop("vendor/x") == vendor
    assert set(meta) == set(REQUEST_KEYS) - {"io.modelcontextprotocol/logLevel"}


@pytest.mark.parametrize("edit", [stamped, lambda params: with_progress_token(params, b"1")])
def test_an_array_can_not_be_stamped(edit: Callable[[bytes], bytes]) -> None:
    with pytest.raises(NotAnObject):
        edit(b"[1]")


SERVER = b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}'


@pytest.mark.parametrize(
    ("result", "changed"),
    [
        (b"{}", b'{"resultType":"complete",%b}' % SERVER),
        (b'{"a":1.0}', b'{"a":1.0,"resultType":"complete",%b}' % SERVER),
        (b'{"resultType":"input_required"}', b'{"resultType":"input_required",%b}' % SERVER),
        (
            b'{"_meta":{"x":1},"content":[]}',
            b'{"_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"s"}},"content":[],"resultType":"complete"}',
        ),
        (
            b'{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"upstream"}}}',
            b'{"resultType":"complete",%b}' % SERVER,
        ),
        (b"null", b"null"),
        (b"[1.0]", b"[1.0]"),
    ],
)
def test_stamping_a_result(result: bytes, changed: bytes) -> None:
    assert stamp_result(result, server_info=b'{"name":"s"}') == changed


def test_stamping_a_result_with_caching_hints() -> None:
    stamped = stamp_result(b'{"tools":[]}', server_info=b'{"name":"s"}', ttl_ms=0, cache_scope="private")
    assert stamped == b'{"tools":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",%b}' % SERVER
    given = b'{"ttlMs":5,"cacheScope":"public"}'
    kept = stamp_result(given, server_info=b'{"name":"s"}', ttl_ms=0, cache_scope="private")
    assert kept == b'{"ttlMs":5,"cacheScope":"public","resultType":"complete",%b}' % SERVER


@pytest.mark.parametrize(
    ("params", "token"),
    [
        (None, None),
        (b"[1]", None),
        (b"{}", None),
        (b'{"_meta":1}', None),
        (b'{"_meta":{"progressToken": 7 }}', b"7"),
        (b'{"_meta":{"progressToken":"\\u0061"}}', b'"\\u0061"'),
        (b'{"_meta":{"progressToken":1.50}}', b"1.50"),
        (b'{"_meta":{"progressToken":null}}', None),
        (b'{"_meta":{"progressToken":{}}}', None),
    ],
)
def test_a_progress_token_is_read_as_it_stands(params: bytes | None, token: bytes | None) -> None:
    assert progress_token(params) == token


@pytest.mark.parametrize(
    ("params", "changed"),
    [
        (None, b'{"_meta":{"progressToken":"t"}}'),
        (b'{"a":1}', b'{"a":1,"_meta":{"progressToken":"t"}}'),
        (b'{"_meta":{"progressToken":7,"x":1.0},"a":1}', b'{"_meta":{"progressToken":"t","x":1.0},"a":1}'),
    ],
)
def test_setting_a_progress_token(params: bytes | None, changed: bytes) -> None:
    assert with_progress_token(params, b'"t"') == changed
    assert progress_token(changed) == b'"t"'


def test_taking_a_progress_token_away() -> None:
    assert without_progress_token(b'{"_meta":{"progressToken":7,"x":1.0}}') == b'{"_meta":{"x":1.0}}'
    assert without_progress_token(b'{"_meta":{"progressToken":7},"a":1}') == b'{"a":1}'
    assert without_progress_token(b'{ "a":1 }') == b'{ "a":1 }'
