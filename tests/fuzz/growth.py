"""Long inputs of every bad shape, and what they cost: work and memory may grow with the length, not faster.

The rule: work is counted as calls (`sys.setprofile`), which is the same on every machine; time, which also
sees the inside of a regular expression, is measured only by the fuzzer itself, never by a test.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from types import FrameType

import answers

from mcpzip.wire import (
    INTERNAL_ERROR,
    Error,
    Event,
    Invalid,
    NotAnObject,
    Peer,
    Result,
    Role,
    RpcError,
    quote,
    split_object,
    stamp_request,
    unquote,
    with_members,
    without_members,
)
from mcpzip.wire.json_object import members, scan

SHAPES: dict[str, tuple[bytes, bytes, bytes]] = {
    "digits": (b'{"jsonrpc":"2.0","id":', b"9", b',"result":{}}'),
    "fraction": (b'{"jsonrpc":"2.0","id":1.', b"0", b',"result":{}}'),
    "brackets": (b'{"jsonrpc":"2.0","id":1,"result":', b"[", b""),
    "empty arrays": (b'{"jsonrpc":"2.0","id":1,"result":[', b"[],", b"[]]}"),
    "closing brackets": (b'{"jsonrpc":"2.0","id":1,"result":', b"]", b"}"),
    "objects": (b'{"jsonrpc":"2.0","id":1,"result":', b'{"a":', b""),
    "members": (b"{", b'"a":1,', b'"id":1,"result":{}}'),
    "members, then nonsense": (b"{", b'"a":1,', b'"id":1,"result":{}'),
    "members with surrogates": (b"{", b'"\\ud800":"\\udfff",', b'"id":1,"result":{}}'),
    "keys without values": (b'{"jsonrpc":"2.0","id":1,', b'"result":', b"}"),
    "ids": (b'{"jsonrpc":"2.0",', b'"id":1,', b'"result":{}'),
    "quotes": (b'{"jsonrpc":"2.0","id":1,"result":', b'"', b""),
    "backslashes": (b'{"jsonrpc":"2.0","id":1,"result":"', b"\\", b""),
    "escaped quotes": (b'{"jsonrpc":"2.0","id":1,"result":"', b'\\"', b"}"),
    "surrogates": (b'{"jsonrpc":"2.0","id":1,"result":"', b"\\ud800", b'"}'),
    "escaped key": (b'{"', b"\\u0061", b'":1,"id":1,"result":{}}'),
    "text": (b'{"jsonrpc":"2.0","id":1,"result":"', b"x", b'"}'),
    "letters": (b'{"jsonrpc":"2.0","id":1,"result":"', "é".encode(), b'"}'),
    "letters, one of them astral": ('{"jsonrpc":"2.0","id":1,"result":"😀'.encode(), b"x", b'"}'),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"result":"', b"\xff", b'"}'),
    "not UTF-8, not JSON": (b"", b"\xff", b""),
    "junk": (b"", b"log ", b""),
    "spaces": (b'{"jsonrpc":"2.0","id":1', b" ", b',"result":{}}'),
    "spaces at the end": (b'{"jsonrpc":"2.0","id":1,"result":{}', b" ", b"x"),
    "spaces alone": (b"", b" ", b""),
    "commas": (b'{"jsonrpc":"2.0","id":1,"result":[', b",", b"]}"),
    "method": (b'{"jsonrpc":"2.0","id":7,"method":"', b"\\n", b'"}'),
    "params": (b'{"jsonrpc":"2.0","method":"notifications/progress","params":{', b'"a":{},', b'"b":1}}'),
    "lines": (b"", b"\n", b""),
    "requests": (b"", b'{"jsonrpc":"2.0","id":7,"method":"a"}\n', b""),
    "ended lines": (b"", b"{}\r\n", b""),
}
"""By name, the beginning, what is repeated, and the end. Most pretend to be the answer to our request 1."""


def shaped(name: str, size: int) -> bytes:
    """A text of that shape, about ``size`` bytes long."""
    head, unit, tail = SHAPES[name]
    return head + unit * (size // len(unit)) + tail


def _received(role: Role, text: bytes) -> None:
    peer = Peer(role=role, max_frame=2 * len(text) + 1000)
    peer.request("tools/call")
    for event in peer.receive(text + b"\n"):
        id = getattr(event, "id", None)
        if isinstance(id, bytes):
            peer.error(id, -1, "no")
    peer.eof()


def _in_pieces(text: bytes) -> None:
    peer = Peer(role=Role.CLIENT, max_frame=len(text) // 2)
    for at in range(0, len(text), 100):
        peer.receive(text[at : at + 100])
    peer.eof()


def _edited(text: bytes) -> None:
    for edit in (
        split_object,
        members,
        lambda text: list(scan(text, {})),
        lambda text: with_members(text, {"a": b"2", "new": b"1"}),
        lambda text: without_members(text, ("a", "b")),
        lambda text: stamp_request(text, "2026-07-28", b"{}", b"{}"),
    ):
        try:
            edit(text)
        except NotAnObject:
            pass
    try:
        quote(unquote(text))
    except ValueError:
        pass


USES: dict[str, Callable[[bytes], None]] = {
    "server": lambda text: _received(Role.SERVER, text),
    "client": lambda text: _received(Role.CLIENT, text),
    "in pieces": _in_pieces,
    "edited": _edited,
    "body": answers.as_body,
    "event": answers.as_stream,
}


def calls(use: Callable[[bytes], None], text: bytes) -> int:
    """How many functions, Python's and C's, are called to deal with ``text``."""
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        use(text)
    finally:
        sys.setprofile(None)
    return made


def seconds(use: Callable[[bytes], None], text: bytes, times: int = 3) -> float:
    """The processor time ``text`` takes, s; the least of some."""
    taken = []
    for _ in range(times):
        start = time.thread_time()
        use(text)
        taken.append(time.thread_time() - start)
    return min(taken)


def peak(use: Callable[[bytes], None], text: bytes) -> int:
    """The most memory held at a time beyond ``text`` itself, bytes."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        use(text)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


MOST_HELD = 48
"""Times its own size that a text may take while it is dealt with: tiny members and tiny lines cost most."""
PIECE = 4096
"""Bytes that come at a time, where input comes in pieces."""


def held_of_a_flood(limit: int) -> int:
    """What a peer may hold, in bytes, of a line that never ends, when frames are limited to ``limit``."""
    return 2 * (limit + PIECE) + (64 << 10)


def flooded(line: bytes, limit: int) -> int:
    """The most memory held while ``line`` comes to a peer that takes frames of ``limit`` bytes."""
    peer = Peer(role=Role.SERVER, max_frame=limit)

    def play(line: bytes) -> None:
        assert _arriving(peer, line) == []
        (event,) = peer.receive(b"\n")
        assert isinstance(event, Invalid)
        assert event.message == f"a message of {len(line)} bytes is too long"

    return peak(play, line)


def answered_at_length(line: bytes, limit: int) -> None:
    """``line`` answers our request 1 and is longer than ``limit``: that one fails, the next is understood."""
    peer = Peer(role=Role.CLIENT, max_frame=limit)
    peer.request("tools/call")
    peer.request("tools/call")
    reason = f"the answer can't be read: a message of {len(line)} bytes is too long"
    assert _arriving(peer, line) == []
    assert peer.receive(b"\n") == [Error(1, RpcError(INTERNAL_ERROR, reason), ours=True)]
    assert peer.receive(b'{"jsonrpc":"2.0","id":2,"result":{}}\n') == [Result(2, b"{}")]


def _arriving(peer: Peer, line: bytes) -> list[Event]:
    return [event for at in range(0, len(line), PIECE) for event in peer.receive(line[at : at + PIECE])]
