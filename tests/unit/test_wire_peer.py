"""A `Peer` told one thing at a time: what goes in, what must come out."""

import pytest

from mcpzip.wire import (
    Cancelled,
    Closed,
    Error,
    Event,
    Invalid,
    Junk,
    Notification,
    Peer,
    PeerClosedError,
    Progress,
    Request,
    Result,
    Role,
    RpcError,
    Stray,
    negotiate,
)

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
TOO_DEEP = 1_000_000


def server(max_frame: int = 1 << 24) -> Peer:
    return Peer(role=Role.SERVER, max_frame=max_frame)


def client_that_asked(times: int = 1, method: str = "tools/call", max_frame: int = 1 << 24) -> Peer:
    peer = Peer(role=Role.CLIENT, max_frame=max_frame)
    for _ in range(times):
        peer.request(method)
    return peer


def only(events: list[Event]) -> Event:
    (event,) = events
    return event


def test_a_conversation() -> None:
    client, server = Peer(role=Role.CLIENT), Peer(role=Role.SERVER)
    assert client.next_id == 1
    number, line = client.request("tools/call", b'{"name":"add"}')
    assert (number, line) == (1, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}\n')
    assert list(client.open_requests) == [1]
    assert server.receive(line) == [Request(b"1", "tools/call", b'{"name":"add"}')]
    assert list(server.owed) == [b"1"]
    progress = server.notify("notifications/progress", b'{"progressToken":1,"progress":0.5}')
    assert client.receive(progress) == [Progress(1, b'{"progressToken":1,"progress":0.5}')]
    answer = server.result(b"1", b'{"content":[]}')
    assert answer == b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
    assert not server.owed
    assert client.receive(answer) == [Result(1, b'{"content":[]}')]
    assert not client.open_requests
    assert client.eof() == [Closed(())]


def test_an_error_passes_with_its_data() -> None:
    client, peer = client_that_asked(), server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n')
    line = peer.error(b"1", -32602, 'no "x" ☃', b'{ "n": 1.0 }')
    assert client.receive(line) == [Error(1, RpcError(-32602, 'no "x" ☃', b'{ "n": 1.0 }'))]
    assert peer.error(None, -32700, "not JSON") == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}\n'
    )


def test_ids_start_where_they_are_told_to() -> None:
    peer = Peer(role=Role.CLIENT, first_id=100)
    assert [peer.request("ping")[0], peer.request("ping")[0], peer.next_id] == [100, 101, 102]


@pytest.mark.parametrize("line_break", [b"\n", b"\r\n", b"\r"])
def test_a_line_break_in_a_text_becomes_space_so_that_no_frame_tears(line_break: bytes) -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}\n{"jsonrpc":"2.0","id":2,"method":"a"}\n')
    text = b'{"a":' + line_break + b"1}"
    lines = [
        peer.request("a", text)[1],
        peer.notify("a", text),
        peer.result(b"1", text),
        peer.error(b"2", 1, "a", text),
    ]
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") and b"\r" not in line for line in lines)
    assert all(b'{"a":' + b" " * len(line_break) + b"1}" in line for line in lines)


# What they may ask


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
    assert peer.owed == ()
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
    assert peer.owed == (b"7",)


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
    assert [type(event) for event in peer.receive(line)] == [Stray]


@pytest.mark.parametrize(
    "params", [b"", b',"params":{}', b',"params":[1]', b',"params":{"requestId":2.5}', b',"params":null']
)
def test_a_cancellation_of_nothing_is_stray(params: bytes) -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')
    event = only(peer.receive(b'{"jsonrpc":"2.0","method":"notifications/cancelled"%b}\n' % params))
    assert isinstance(event, Stray)
    assert event.kind == "cancelled"
    assert peer.owed == (b"1",)


def test_a_reason_that_is_no_text_is_no_reason() -> None:
    peer = server()
    peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}\n')
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":{}}}\n'
    assert peer.receive(line) == [Cancelled(b"1", None)]


# What they may answer


@pytest.mark.parametrize("id", [b"1", b'"1"', b"1.0", b" 1 "])
@pytest.mark.parametrize(
    "result",
    [
        b"{}",
        b"null",
        b"[1]",
        b'"x"',
        b"1e400",
        b"-0",
        b'{"a":"\\ud800"}',
        b'{ "b" : 1.0 , "a" : 2 }',
        b"false",
    ],
)
def test_a_result_passes_byte_for_byte(id: bytes, result: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, result)
    assert client_that_asked().receive(line) == [Result(1, result)]


@pytest.mark.parametrize(
    "extra", [b'"error":null,', b'"jsonrpc":"1.0",', b'"method":"tools/call",', b'"x":"\xf0\x9f\x98\x80",']
)
def test_a_sloppy_answer_is_still_an_answer(extra: bytes) -> None:
    assert client_that_asked().receive(b'{%b"id":1,"result":{}}\n' % extra) == [Result(1, b"{}")]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b'{"code":-32601,"message":"no"}', RpcError(-32601, "no")),
        (b'{"code":1,"message":"","data":null}', RpcError(1, "", b"null")),
        (b'{"code":1.0,"message":"a"}', RpcError(1, "a")),
        (b'{"code":"-32601","message":"a"}', RpcError(-32601, "a")),
        (b'{"code":1,"message":"\\ud800"}', RpcError(1, "\ud800")),
        (
            b'{"code":"E_GONE","message":"a"}',
            RpcError(INTERNAL_ERROR, 'a (error code "E_GONE")', b'{"code":"E_GONE","message":"a"}'),
        ),
        (b'{"code":1e99,"message":"a","data":1}', RpcError(INTERNAL_ERROR, "a (error code 1e99)", b"1")),
        (b'{"message":"a"}', RpcError(INTERNAL_ERROR, "a (error code none)", b'{"message":"a"}')),
        (b'{"code":1,"why":"b"}', RpcError(1, "the peer gave no message", b'{"code":1,"why":"b"}')),
        (b'{"code":1,"message":{"a":1}}', RpcError(1, '{"a":1}')),
        (b"{}", RpcError(INTERNAL_ERROR, "the peer gave no message (error code none)", b"{}")),
        (b'"boom"', RpcError(INTERNAL_ERROR, "boom")),
        (b"[1]", RpcError(INTERNAL_ERROR, "[1]", b"[1]")),
        (b"false", RpcError(INTERNAL_ERROR, "false", b"false")),
    ],
)
def test_an_error_of_any_form_is_an_error(text: bytes, error: RpcError) -> None:
    assert client_that_asked().receive(b'{"jsonrpc":"2.0","id":1,"error":%b}\n' % text) == [Error(1, error)]


def test_an_error_beside_a_null_result_is_an_error() -> None:
    line = b'{"id":1,"result":null,"error":{"code":1,"message":"a"}}\n'
    assert client_that_asked().receive(line) == [Error(1, RpcError(1, "a"))]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"jsonrpc":"2.0","id":1}', "the answer has neither result nor error"),
        (b'{"jsonrpc":"2.0","id":1,"error":null}', "the error is null"),
        (b'{"id":1,"result":{},"error":{"code":1,"message":"a"}}', "the answer has both result and error"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', "the answer can't be read: not UTF-8"),
        (b'{"jsonrpc":"2.0","result":{"a":"\xff"},"id":1}', "the answer can't be read: not UTF-8"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', "the answer can't be read: not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a', "the answer can't be read: not JSON"),
        (b'{"result":{"a":01},"jsonrpc":"2.0","id":1}', "the answer can't be read: not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"error":"\\"', "the answer can't be read: not JSON"),
        (
            b'{"jsonrpc":"2.0","id":1,"result":%b%b}' % (b"[" * TOO_DEEP, b"]" * TOO_DEEP),
            "the answer can't be read: nested too deeply",
        ),
        (
            b'{"result":%b%b,"id":1,"jsonrpc":"2.0"}' % (b'{"a":' * TOO_DEEP, b"}" * TOO_DEEP),
            "the answer can't be read: nested too deeply",
        ),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else "",
)
def test_an_answer_that_is_none_fails_its_request(role: Role, line: bytes, reason: str) -> None:
    peer = Peer(role=role)
    peer.request("tools/call")
    assert peer.receive(line + b"\n") == [Error(1, RpcError(INTERNAL_ERROR, reason))]
    assert peer.open_requests == ()


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % (b"x" * 5000),
        b'{"result":"%b","jsonrpc":"2.0","id":1}' % (b"x" * 5000),
        b'{"result":"%b","id":1,"jsonrpc":"2.0"}' % (b"x" * 5000),
    ],
)
def test_an_answer_too_long_fails_its_request(line: bytes) -> None:
    peer = client_that_asked(max_frame=4000)
    reason = f"the answer can't be read: a message of {len(line)} bytes is too long"
    assert peer.receive(line + b"\n") == [Error(1, RpcError(INTERNAL_ERROR, reason))]
    peer.request("tools/call")
    assert peer.receive(b'{"id":2,"result":{}}\n') == [Result(2, b"{}")]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("id", [b"2", b"null", b'"a"', b"1.5", b"[]", b"true", b"0", b"-1", b"9" * 5000])
@pytest.mark.parametrize("outcome", [b'"result":{}', b'"error":{"code":1,"message":"a"}'])
def test_an_answer_to_nothing_is_stray(role: Role, id: bytes, outcome: bytes) -> None:
    peer = Peer(role=role)
    peer.request("a")
    line = b'{"jsonrpc":"2.0","id":%b,%b}' % (id, outcome)
    assert peer.receive(line + b"\n") == [Stray("answer", line[:200].decode())]
    assert peer.open_requests == (1,)


def test_the_second_answer_is_stray() -> None:
    peer = client_that_asked()
    line = b'{"id":1,"result":{}}\n'
    assert peer.receive(line + line) == [Result(1, b"{}"), Stray("answer", '{"id":1,"result":{}}')]


def test_after_our_cancellation_the_answer_is_stray() -> None:
    peer = client_that_asked()
    assert peer.cancel(1, "too slow") == (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}\n'
    )
    assert peer.open_requests == ()
    assert peer.receive(b'{"id":1,"result":{}}\n') == [Stray("answer", '{"id":1,"result":{}}')]
    assert peer.cancel(1) is None
    peer.request("b")
    assert (
        peer.cancel(2) == b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}\n'
    )


@pytest.mark.parametrize("token", [b"1", b'"1"', b"1.0"])
def test_progress_finds_its_request(token: bytes) -> None:
    params = b'{"progressToken":%b,"progress":1,"x":"\\ud800"}' % token
    line = b'{"jsonrpc":"2.0","method":"notifications/progress","params":%b}\n' % params
    peer = client_that_asked()
    assert peer.receive(line) == [Progress(1, params)]
    peer.receive(b'{"id":1,"result":{}}\n')
    assert peer.receive(line) == [Stray("progress", params.decode())]


@pytest.mark.parametrize(
    "params", [b"", b',"params":{}', b',"params":[1]', b',"params":{"progressToken":"x"}']
)
def test_progress_of_nothing_is_stray(params: bytes) -> None:
    event = only(
        client_that_asked().receive(b'{"jsonrpc":"2.0","method":"notifications/progress"%b}\n' % params)
    )
    assert isinstance(event, Stray)
    assert event.kind == "progress"


def test_a_modern_server_ends_a_subscription_by_cancelling_it() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bye"}}\n'
    assert client_that_asked(method="subscriptions/listen").receive(line) == [
        Error(1, RpcError(-32800, "bye"))
    ]
    peer = client_that_asked(method="tools/call")
    assert [type(event) for event in peer.receive(line)] == [Stray]
    assert peer.open_requests == (1,)


# What is no message


@pytest.mark.parametrize(
    "line",
    [
        b"Listening on stdio ...",
        b"\x1b[32mINFO\x1b[0m ready",
        b"\xff\xfe\x00",
        b"{}",
        b"[]",
        b"42",
        b'{"level":"info","msg":"started"}',
        b'{"level":"info","method":"GET","id":"abc"}',
        b'{"jsonrpc":"2.0","method":"a","params":1}',
        b'{"jsonrpc":"2.0","id":null,"method":"a"}',
        b'{"jsonrpc":"2.0","id":2,"met',
        b'{"jsonrpc":"2.0","id":1,"met',
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{',
        b'[{"jsonrpc":"2.0","id":1,"result":{}}]',
        b"[" * TOO_DEEP,
        b"x" * 5000,
    ],
    ids=lambda line: repr(line[:40]),
)
def test_what_a_server_writes_that_is_no_message_is_junk(line: bytes) -> None:
    peer = client_that_asked()
    event = only(peer.receive(line + b"\n"))
    assert isinstance(event, Junk)
    assert event.data == line[:2048]
    assert event.reason
    assert peer.open_requests == (1,)
    assert peer.receive(b'{"id":1,"result":{}}\n') == [Result(1, b"{}")]


@pytest.mark.parametrize(
    ("line", "invalid"),
    [
        (
            b'{"jsonrpc":"2.0","id":9,"method":"a","params":1}',
            Invalid(b"9", INVALID_REQUEST, "params is an object"),
        ),
        (b'{"jsonrpc":"2.0","id":9,"method":"\xff"}', Invalid(b"9", PARSE_ERROR, "not UTF-8")),
        (
            b'{"jsonrpc":"2.0","id":9,"method":"a","params":%b%b}' % (b"[" * TOO_DEEP, b"]" * TOO_DEEP),
            Invalid(b"9", PARSE_ERROR, "nested too deeply"),
        ),
    ],
    ids=["params", "letters", "depth"],
)
def test_a_servers_own_bad_request_is_answered(line: bytes, invalid: Invalid) -> None:
    assert client_that_asked().receive(line + b"\n") == [invalid]


# The end


def test_the_end_closes_what_is_open() -> None:
    peer = client_that_asked(3)
    peer.receive(b'{"id":2,"result":{}}\n')
    assert peer.eof() == [Closed((1, 3))]
    assert peer.open_requests == ()
    assert peer.eof() == []
    assert peer.receive(b'{"id":1,"result":{}}\n') == []
    with pytest.raises(PeerClosedError, match="tools/list can't be asked"):
        peer.request("tools/list")


@pytest.mark.parametrize(
    ("last", "events"),
    [
        (b'{"id":1,"result":{}}', [Result(1, b"{}"), Closed(())]),
        (
            b'{"id":1,"result":{}',
            [Error(1, RpcError(INTERNAL_ERROR, "the answer can't be read: not JSON")), Closed(())],
        ),
        (b'{"id":1,"res', [Junk(b'{"id":1,"res', "not JSON"), Closed((1,))]),
        (b"  ", [Closed((1,))]),
    ],
)
def test_the_last_line_counts_without_its_newline(last: bytes, events: list[Event]) -> None:
    peer = client_that_asked()
    assert peer.receive(last) == []
    assert peer.eof() == events


def test_a_server_may_still_answer_after_the_end_of_input() -> None:
    peer = server()
    assert peer.receive(b'{"jsonrpc":"2.0","id":1,"method":"a"}') == []
    assert peer.eof() == [Request(b"1", "a", None), Closed(())]
    assert peer.result(b"1", b"{}") == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


# Defects of the original, which must not return


def test_junk_on_stdout_does_not_deafen_the_client() -> None:
    """One line that was no JSON ended the original's reader."""
    peer = client_that_asked(2)
    events = peer.receive(b'starting up...\n{"id":1,"result":{}}\nTraceback:\n\n{"id":2,"result":[]}\n')
    assert events == [
        Junk(b"starting up...", "not JSON"),
        Result(1, b"{}"),
        Junk(b"Traceback:", "not JSON"),
        Result(2, b"[]"),
    ]


def test_at_the_end_of_output_nobody_is_left_waiting() -> None:
    """The original never failed the requests that were open when a server died."""
    assert client_that_asked(2).eof() == [Closed((1, 2))]


def test_a_malformed_line_does_not_end_the_server() -> None:
    """One malformed line from the client ended the original's server."""
    events = server().receive(b'{oops\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert events == [Invalid(None, PARSE_ERROR, "not JSON"), Request(b"1", "ping", None)]


@pytest.mark.parametrize("id", [b"-5", b"18446744073709551616"])
def test_an_id_may_be_any_integer(id: bytes) -> None:
    """The original took ids from 0 to 2**64 - 1 and strings, nothing else."""
    assert server().receive(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % id) == [
        Request(id, "ping", None)
    ]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_version_asked_for_is_the_version_given(version: str) -> None:
    """The original answered 2024-11-05 whatever the client asked for."""
    assert negotiate(version) == version


@pytest.mark.parametrize(
    "content",
    [
        b'{"type":"image","data":"aGk=","mimeType":"image/png"}',
        b'{"type":"audio","data":"aGk=","mimeType":"audio/wav"}',
        b'{"type":"resource_link","uri":"file:///a","name":"a"}',
        b'{"type":"hologram","depth":1.50}',
    ],
)
def test_content_of_any_kind_passes(content: bytes) -> None:
    """The original knew text only: any other kind failed to decode, and the tool was run a second time."""
    result = b'{"content":[%b],"isError":true}' % content
    assert client_that_asked().receive(b'{"jsonrpc":"2.0","id":1,"result":%b}\n' % result) == [
        Result(1, result)
    ]
