"""What a `Peer` makes of the answers to its requests, and of what is no message at all."""

import pytest

from mcpzip.wire import (
    Error,
    Event,
    Invalid,
    NotAMessage,
    Peer,
    Progress,
    Result,
    Role,
    RpcError,
    Unmatched,
)

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
TOO_DEEP = 1_000_000


def client_that_asked(times: int = 1, method: str = "tools/call", max_frame: int = 1 << 24) -> Peer:
    peer = Peer(role=Role.CLIENT, max_frame=max_frame)
    for _ in range(times):
        peer.request(method)
    return peer


def only(events: list[Event]) -> Event:
    (event,) = events
    return event


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
        (
            b'{"x":1.0,"code":1,"message":"a","data":2,"y":{ }}',
            RpcError(1, "a", b"2", b'{"x":1.0,"y":{ }}'),
        ),
        (
            b'{"code":"E","message":"a","data":2,"x":1}',
            RpcError(INTERNAL_ERROR, 'a (error code "E")', b"2", b'{"x":1}'),
        ),
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
    assert peer.receive(line + b"\n") == [Error(1, RpcError(INTERNAL_ERROR, reason), ours=True)]
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
    assert peer.receive(line + b"\n") == [Error(1, RpcError(INTERNAL_ERROR, reason), ours=True)]
    peer.request("tools/call")
    assert peer.receive(b'{"id":2,"result":{}}\n') == [Result(2, b"{}")]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("id", [b"2", b"null", b'"a"', b"1.5", b"[]", b"true", b"0", b"-1", b"9" * 5000])
@pytest.mark.parametrize("outcome", [b'"result":{}', b'"error":{"code":1,"message":"a"}'])
def test_an_answer_to_nothing_is_stray(role: Role, id: bytes, outcome: bytes) -> None:
    peer = Peer(role=role)
    peer.request("a")
    line = b'{"jsonrpc":"2.0","id":%b,%b}' % (id, outcome)
    assert peer.receive(line + b"\n") == [Unmatched("answer", line[:200].decode())]
    assert peer.open_requests == (1,)


def test_the_second_answer_is_stray() -> None:
    peer = client_that_asked()
    line = b'{"id":1,"result":{}}\n'
    assert peer.receive(line + line) == [Result(1, b"{}"), Unmatched("answer", '{"id":1,"result":{}}')]


def test_after_our_cancellation_the_answer_is_stray() -> None:
    peer = client_that_asked()
    assert peer.cancel(1, "too slow") == (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}\n'
    )
    assert peer.open_requests == ()
    assert peer.receive(b'{"id":1,"result":{}}\n') == [Unmatched("answer", '{"id":1,"result":{}}')]
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
    assert peer.receive(line) == [Unmatched("progress", params.decode())]


@pytest.mark.parametrize(
    "params", [b"", b',"params":{}', b',"params":[1]', b',"params":{"progressToken":"x"}']
)
def test_progress_of_nothing_is_stray(params: bytes) -> None:
    event = only(
        client_that_asked().receive(b'{"jsonrpc":"2.0","method":"notifications/progress"%b}\n' % params)
    )
    assert isinstance(event, Unmatched)
    assert event.kind == "progress"


def test_a_modern_server_ends_a_subscription_by_cancelling_it() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bye"}}\n'
    assert client_that_asked(method="subscriptions/listen").receive(line) == [
        Error(1, RpcError(-32800, "bye"))
    ]
    peer = client_that_asked(method="tools/call")
    assert [type(event) for event in peer.receive(line)] == [Unmatched]
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
    assert isinstance(event, NotAMessage)
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


@pytest.mark.parametrize("id", [b"01", b'"\\q"', b"1e", b"-", b'"\xff"'])
@pytest.mark.parametrize("order", [b'{"jsonrpc":"2.0","id":%b,"method":"%b"}', b'{"method":"%b","id":%b}'])
def test_an_id_that_is_no_json_is_not_sent_back(id: bytes, order: bytes) -> None:
    """Found by fuzzing: the error for a line too long repeated such an id."""
    long = b"x" * 3000
    line = order % ((id, long) if order.endswith(b'"}') else (long, id))
    peer = Peer(role=Role.SERVER, max_frame=2500)
    event = only(peer.receive(line + b"\n"))
    assert event == Invalid(None, INVALID_REQUEST, f"a message of {len(line)} bytes is too long")
