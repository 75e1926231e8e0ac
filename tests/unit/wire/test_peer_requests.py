"""What a `Peer` makes of the requests and notifications it is sent."""

import pytest

from mcpzip.wire import (
    Cancelled,
    Event,
    Invalid,
    Notification,
    Peer,
    Request,
    Role,
    Unmatched,
)

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
TOO_DEEP = 1_000_000


def server(max_frame: int = 1 << 24) -> Peer:
    return Peer(role=Role.SERVER, max_frame=max_frame)


def only(events: list[Event]) -> Event:
    (event,) = events
    return event


@pytest.mark.parametrize(
    "id", [b"0", b"-1", b"7", b"-0", b'"a"', b'""', b'"7"', b'"\\u0061\\/"', b"9" * 40, b'"\xf0\x9f\x98\x80"']
)
def test_an_id_is_echoed_byte_for_byte(id: bytes) -> None:
    peer = server()
    assert peer.receive(b'{"jsonrpc":"2.0","id": %b ,"method":"ping"}\n' % id) == [Request(id, "ping", None)]
    assert peer.result(id, b"{}") == b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % id


@pytest.mark.parametrize(
    ("text", "params"),
    [
        (b'{"a":1.0}', b'{"a":1.0}'),
        (b"[1]", b"[1]"),
        (b"{ }", b"{ }"),
        (b"null", None),
        (b'{"a":"\\ud800"}', b'{"a":"\\ud800"}'),
    ],
)
def test_params_come_as_they_stand(text: bytes, params: bytes | None) -> None:
    assert server().receive(b'{"jsonrpc":"2.0","method":"x","params": %b }\n' % text) == [
        Notification("x", params)
    ]


def test_a_message_may_be_spelt_oddly() -> None:
    line = (
        b'\xef\xbb\xbf { "params" : {"a":"\\ud800"}, "m\\u0065thod":"\\u0070ing\\ud83d", "x":NULL, "id":1 }\n'
    )
    assert server().receive(line.replace(b"NULL", b"null")) == [
        Invalid(b"1", INVALID_REQUEST, 'jsonrpc is "2.0"'),
    ]
    line = line.replace(b'"x":NULL', b'"jsonrpc":"2\\u002e0"')
    assert server().receive(line) == [Request(b"1", "ping\ud83d", b'{"a":"\\ud800"}')]


@pytest.mark.parametrize(
    ("line", "invalid"),
    [
        (b"hello", Invalid(None, PARSE_ERROR, "not JSON")),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', Invalid(None, PARSE_ERROR, "not JSON")),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
            Invalid(None, PARSE_ERROR, "not JSON"),
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"pi\xffng"}', Invalid(b"1", PARSE_ERROR, "not UTF-8")),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\xff":1}}',
            Invalid(b"1", PARSE_ERROR, "not UTF-8"),
        ),
        (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', Invalid(None, PARSE_ERROR, "not UTF-8")),
        (b'{"jsonrpc":"2.0","id":1,"x":"\xff"', Invalid(None, PARSE_ERROR, "not JSON")),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"a","params":%b%b}' % (b"[" * TOO_DEEP, b"]" * TOO_DEEP),
            Invalid(b"1", PARSE_ERROR, "nested too deeply"),
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"params":%b%b,"method":"a\\q"}' % (b"[" * TOO_DEEP, b"]" * TOO_DEEP),
            Invalid(b"1", PARSE_ERROR, "nested too deeply"),
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"\xff":"\xff","params":%b%b}' % (b"[" * TOO_DEEP, b"]" * TOO_DEEP),
            Invalid(b"1", PARSE_ERROR, "nested too deeply"),
        ),
        (b"[]", Invalid(None, INVALID_REQUEST, "MCP has had no batches since 2025-06-18")),
        (
            b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
            Invalid(None, INVALID_REQUEST, "MCP has had no batches since 2025-06-18"),
        ),
        (b"7", Invalid(None, INVALID_REQUEST, "a message is a JSON object")),
        (b'"\\ud800"', Invalid(None, INVALID_REQUEST, "a message is a JSON object")),
        (b"{}", Invalid(None, INVALID_REQUEST, "a request has a method")),
        (b'{"jsonrpc":"2.0","id":7}', Invalid(b"7", INVALID_REQUEST, "a request has a method")),
        (b'{"jsonrpc":"2.0","id":7,"method":null}', Invalid(b"7", INVALID_REQUEST, "method is a string")),
        (b'{"jsonrpc":"2.0","id":7,"method":["a"]}', Invalid(b"7", INVALID_REQUEST, "method is a string")),
        (b'{"id":7,"method":"ping"}', Invalid(b"7", INVALID_REQUEST, 'jsonrpc is "2.0"')),
        (b'{"jsonrpc":2.0,"id":7,"method":"ping"}', Invalid(b"7", INVALID_REQUEST, 'jsonrpc is "2.0"')),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', Invalid(b'"a"', INVALID_REQUEST, 'jsonrpc is "2.0"')),
        (b'{"jsonrpc":"1.0","method":"ping"}', Invalid(None, INVALID_REQUEST, 'jsonrpc is "2.0"')),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"a","params":1}',
            Invalid(b"7", INVALID_REQUEST, "params is an object"),
        ),
        (
            b'{"jsonrpc":"2.0","method":"a","params":"x"}',
            Invalid(None, INVALID_REQUEST, "params is an object"),
        ),
        (
            b'{"jsonrpc":"2.0","id":null,"method":"a"}',
            Invalid(None, INVALID_REQUEST, "an id is a string or an integer"),
        ),
        (
            b'{"jsonrpc":"2.0","id":true,"method":"a"}',
            Invalid(None, INVALID_REQUEST, "an id is a string or an integer"),
        ),
        (
            b'{"jsonrpc":"2.0","id":{"a":1},"method":"a"}',
            Invalid(None, INVALID_REQUEST, "an id is a string or an integer"),
        ),
        (
            b'{"jsonrpc":"2.0","id":1.5,"method":"a"}',
            Invalid(b"1.5", INVALID_REQUEST, "an id is a string or an integer"),
        ),
        (
            b'{"jsonrpc":"2.0","id":1e400,"method":"a"}',
            Invalid(b"1e400", INVALID_REQUEST, "an id is a string or an integer"),
        ),
        (
            b'{"jsonrpc":"2.0","id":7,"method":"a","result":1}',
            Invalid(b"7", INVALID_REQUEST, "a request has no result and no error"),
        ),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else "",
)
def test_what_a_server_must_refuse(line: bytes, invalid: Invalid) -> None:
    peer = server()
    assert peer.receive(line + b"\n") == [invalid]
    owed = b"null" if invalid.id is None else invalid.id
    assert peer.error(invalid.id, invalid.code, "no").startswith(b'{"jsonrpc":"2.0","id":%b,"error":' % owed)
    assert peer.unanswered == ()
    assert peer.receive(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n') == [Request(b"7", "ping", None)]


@pytest.mark.parametrize(("first", "second"), [(b"7", b"7"), (b'"a"', b'"\\u0061"'), (b"0", b"-0")])
def test_an_id_that_is_still_open_is_not_taken_again(first: bytes, second: bytes) -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":%b,"method":"a"}\n' % first)
    event = only(peer.receive(b'{"jsonrpc":"2.0","id":%b,"method":"b"}\n' % second))
    assert isinstance(event, Invalid)
    assert (event.id, event.code) == (None, INVALID_REQUEST)
    assert peer.error(event.id, event.code, event.message)
    assert peer.result(first, b"{}")
    assert peer.receive(b'{"jsonrpc":"2.0","id":%b,"method":"b"}\n' % second) == [Request(second, "b", None)]


def test_a_bad_request_under_an_open_id_is_not_refused_by_that_id() -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":7,"method":"a"}\n')
    assert peer.receive(b'{"jsonrpc":"2.0","id":7}\n') == [
        Invalid(None, INVALID_REQUEST, "a request has a method")
    ]
    assert peer.unanswered == (b"7",)


def test_a_request_without_a_method_is_no_answer_to_ours() -> None:
    peer = server()
    peer.request("roots/list")
    assert peer.receive(b'{"jsonrpc":"2.0","id":1,"params":{}}\n') == [
        Invalid(b"1", INVALID_REQUEST, "a request has a method")
    ]
    assert peer.open_requests == (1,)


def test_a_string_and_a_number_are_different_ids() -> None:
    peer = server()
    events = peer.receive(b'{"jsonrpc":"2.0","id":7,"method":"a"}\n{"jsonrpc":"2.0","id":"7","method":"b"}\n')
    assert events == [Request(b"7", "a", None), Request(b'"7"', "b", None)]


def test_a_request_too_long_is_refused_by_its_id() -> None:
    peer = server(max_frame=100)
    line = b'{"jsonrpc":"2.0","id":5,"method":"a","params":{"a":"%b"}}\n' % (b"x" * 100)
    message = f"a message of {len(line) - 1} bytes is too long"
    assert peer.receive(line) == [Invalid(b"5", INVALID_REQUEST, message)]
    last = b'{"params":{"a":"%b"},"method":"a","jsonrpc":"2.0","id":6}\n' % (b"x" * 3000)
    message = f"a message of {len(last) - 1} bytes is too long"
    assert peer.receive(last) == [Invalid(b"6", INVALID_REQUEST, message)]


def test_an_answer_is_sent_once() -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')
    assert peer.result(b"1", b"{}")
    assert peer.result(b"1", b"{}") == b""
    assert peer.error(b"1", 1, "late") == b""
    assert peer.result(b"2", b"{}") == b""


@pytest.mark.parametrize(("id", "named"), [(b"1", b"1"), (b'"a"', b'"a"'), (b'"a"', b'"\\u0061"')])
def test_a_cancelled_request_gets_no_answer(id: bytes, named: bytes) -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":%b,"method":"a"}\n' % id)
    line = (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b,"reason":"tired"}}\n'
        % named
    )
    assert peer.receive(line) == [Cancelled(id, "tired")]
    assert peer.result(id, b"{}") == b""
    assert peer.error(id, 1, "a") == b""
    assert [type(event) for event in peer.receive(line)] == [Unmatched]


@pytest.mark.parametrize(
    "params", [b"", b',"params":{}', b',"params":[1]', b',"params":{"requestId":2.5}', b',"params":null']
)
def test_a_cancellation_of_nothing_is_stray(params: bytes) -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')
    event = only(peer.receive(b'{"jsonrpc":"2.0","method":"notifications/cancelled"%b}\n' % params))
    assert isinstance(event, Unmatched)
    assert event.kind == "cancelled"
    assert peer.unanswered == (b"1",)


def test_a_reason_that_is_no_text_is_no_reason() -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":{}}}\n'
    assert peer.receive(line) == [Cancelled(b"1", None)]
