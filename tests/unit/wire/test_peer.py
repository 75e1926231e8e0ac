"""A `Peer` from beginning to end, and the defects that must not return."""

import json

import pytest

from mcpzip.wire import (
    Closed,
    Error,
    Event,
    Invalid,
    NotAMessage,
    Peer,
    PeerClosedError,
    Progress,
    Request,
    Result,
    Role,
    RpcError,
    Unmatched,
    negotiate,
)

PARSE_ERROR, INTERNAL_ERROR = -32700, -32603


def server(max_frame: int = 1 << 24) -> Peer:
    return Peer(role=Role.SERVER, max_frame=max_frame)


def client_that_asked(times: int = 1, method: str = "tools/call", max_frame: int = 1 << 24) -> Peer:
    peer = Peer(role=Role.CLIENT, max_frame=max_frame)
    for _ in range(times):
        peer.request(method)
    return peer


def test_a_conversation() -> None:
    client, server = Peer(role=Role.CLIENT), Peer(role=Role.SERVER)
    assert client.next_id == 1
    number, line = client.request("tools/call", b'{"name":"add"}')
    assert (number, line) == (1, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}\n')
    assert list(client.open_requests) == [1]
    assert server.receive(line) == [Request(b"1", "tools/call", b'{"name":"add"}')]
    assert list(server.unanswered) == [b"1"]
    progress = server.notify("notifications/progress", b'{"progressToken":1,"progress":0.5}')
    assert client.receive(progress) == [Progress(1, b'{"progressToken":1,"progress":0.5}')]
    answer = server.result(b"1", b'{"content":[]}')
    assert answer == b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n'
    assert not server.unanswered
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


# The end


def test_the_end_closes_what_is_open() -> None:
    peer = client_that_asked(3)
    peer.receive(b'{"id":2,"result":{}}\n')
    assert peer.eof() == [Closed((1, 3))]
    assert peer.open_requests == ()
    assert peer.eof() == []
    assert peer.receive(b'{"id":1,"result":{}}\n') == []
    with pytest.raises(PeerClosedError, match="tools/list can't be sent"):
        peer.request("tools/list")


@pytest.mark.parametrize(
    ("last", "events"),
    [
        (b'{"id":1,"result":{}}', [Result(1, b"{}"), Closed(())]),
        (
            b'{"id":1,"result":{}',
            [Error(1, RpcError(INTERNAL_ERROR, "the answer can't be read: not JSON"), ours=True), Closed(())],
        ),
        (b'{"id":1,"res', [NotAMessage(b'{"id":1,"res', "not JSON"), Closed((1,))]),
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
        NotAMessage(b"starting up...", "not JSON"),
        Result(1, b"{}"),
        NotAMessage(b"Traceback:", "not JSON"),
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


def test_with_a_suffix_our_ids_are_strings_that_no_other_peer_has() -> None:
    peer = Peer(role=Role.SERVER)
    peer.id_suffix = b"abc"
    number, line = peer.request("roots/list")
    assert json.loads(line)["id"] == "q1-abc"
    for id in (
        f'"q{"1" * 5_000}-abc"',
        "1",
        '"1"',
        '"q1"',
        '"q1-abd"',
        '"q01-abc"',
        '"q2-abc"',
        '"q-abc"',
        '"q\\u0031-abc"',
    ):
        assert isinstance(peer.message(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id.encode()), Unmatched)
    assert peer.message(b'{"jsonrpc":"2.0","id":"q1-abc","result":{}}') == Result(number, b"{}")
    number, _ = peer.request("roots/list")
    cancelled = peer.cancel(number)
    assert cancelled is not None
    assert json.loads(cancelled)["params"] == {"requestId": "q2-abc"}
