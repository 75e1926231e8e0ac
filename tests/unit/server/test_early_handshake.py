"""The front handshake may be there or not: a client can't tell by any byte of what it hears."""

import json
import os
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpzip.catalog import Catalog
from mcpzip.config import Config, ServerConfig
from mcpzip.model import limits
from mcpzip.proxy.proxy import Proxy
from mcpzip.server import handshake_cache
from mcpzip.server.early_handshake import EarlyHandshake, answer_early
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.session import Session
from mcpzip.server.stdio import cache_of
from mcpzip.system.startup_io import answer_while

SERVERS = {
    name: ServerConfig(name=name, transport="stdio", command="never-run") for name in ("slack", "git.hub")
}
PROXY = Proxy(Config(path="/nowhere/config.json", servers=SERVERS), Catalog())
ENDPOINT = Endpoint(PROXY)
WORDS = ENDPOINT.handshake_results()
assert WORDS is not None
CACHE = cache_of(WORDS, stamp=["a stamp"])

STAMP = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def line(method: str, params: object = None, number: str = "1", more: str = "") -> bytes:
    """A request; ``number`` and ``more`` are JSON text."""
    said = "" if params is None else f',"params":{json.dumps(params)}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"{method}"{said}{more}}}\n'.encode()


INITIALIZE = line("initialize", HELLO)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
DISCOVER = line("server/discover", {"_meta": STAMP})
LIST, MODERN_LIST = line("tools/list"), line("tools/list", {"_meta": STAMP})


def session_alone(pieces: Sequence[bytes]) -> bytes:
    said: list[bytes] = []
    session = Session(ENDPOINT, said.append)
    for piece in pieces:
        session.receive(piece)
    session.end()
    return b"".join(said)


def desk_then_session(pieces: Sequence[bytes], handover: int) -> bytes:
    """The handshake hears the pieces before ``handover``, the session those after it."""
    handshake = EarlyHandshake(CACHE)
    said = [handshake.receive(piece) for piece in pieces[:handover]]
    session = Session(ENDPOINT, said.append)
    session.replay(handshake.answered)
    session.receive(handshake.rest())
    for piece in pieces[handover:]:
        session.receive(piece)
    session.end()
    return b"".join(said)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


IDS = st.sampled_from(
    ["0", "1", "2", "-0", "-7", "1.0", "1e2", '"a"', r'"\u0061"', '"ä"', "null", "true", "[]", str(10**40)]
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "server/discover", "tasks/list", "notifications/initialized", ""]
)
METAS = st.sampled_from(
    [
        STAMP,
        {},
        {"progressToken": 1},
        {**STAMP, "io.modelcontextprotocol/protocolVersion": "2099-01-01"},
        {**STAMP, "io.modelcontextprotocol/protocolVersion": 7},
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28"},
        {**STAMP, "io.modelcontextprotocol/clientCapabilities": 5},
        None,
        5,
    ]
)
PARAMS = st.one_of(
    st.none(),
    st.just({}),
    st.builds(
        lambda version: {**HELLO, "protocolVersion": version},
        st.sampled_from(["2024-11-05", "2025-11-25", "", "x", 5]),
    ),
    st.builds(lambda meta: {"_meta": meta}, METAS),
    st.builds(lambda meta: {**HELLO, "_meta": meta}, METAS),
    st.builds(lambda cursor: {"cursor": cursor}, st.sampled_from([None, "", "x"])),
    st.sampled_from([[], 5, "x"]),
)
MORE = st.sampled_from(
    [
        "",
        ',"x":NaN',
        ',"x":1e999',
        ',"result":{}',
        ',"error":{"code":1,"message":"x"}',
        ',"method":"ping"',
        ',"id":9',
    ]
)
ODD = st.sampled_from(
    [
        b"\n",
        b" \r\n",
        b"{\n",
        b"no json at all\n",
        b"[]\n",
        b"[" + INITIALIZE.strip() + b"]\n",
        b"\xef\xbb\xbf" + INITIALIZE,
        INITIALIZE.decode().encode("utf-16-le"),
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xff"}}\n',
        b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n',
        b'{"id":1,"method":"ping"}\n',
        b'{"jsonrpc":"2.0","id":1,"method":7}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}\n',
        b"  " + LIST.strip() + b" \r\n",
    ]
)
USUAL = st.sampled_from([INITIALIZE, INITIALIZED, DISCOVER, LIST, MODERN_LIST, line("ping")])
LINES = st.lists(st.one_of(USUAL, USUAL, ODD, st.builds(line, METHODS, PARAMS, IDS, MORE)), max_size=7)


@settings(max_examples=400)
@given(LINES, st.lists(st.integers(0, 2000), max_size=4), st.integers(0, 5), st.booleans())
@example([DISCOVER, LIST], [], 1, False)  # was answered as if the conversation were legacy
@example([INITIALIZE, MODERN_LIST], [], 1, False)  # was answered as if it were modern
@example([INITIALIZED, LIST], [], 1, False)  # was answered before any handshake
@example([line("initialize", HELLO, more=',"x":NaN')], [], 1, False)  # NaN is no JSON
@example([line("initialize", HELLO, number="-0")], [], 1, False)  # was echoed as 0
@example([line("initialize", HELLO, number=r'"\u0061"')], [], 1, False)  # was echoed as "a"
@example([INITIALIZE.decode().encode("utf-16-le")], [], 1, False)  # json.loads takes it
@example([line("initialize", HELLO, more=',"result":{}')], [], 1, False)
@example([INITIALIZE, LIST], [], 1, True)  # the last line, unterminated, got no answer
def test_a_client_cannot_tell_whether_the_desk_was_there(
    lines: list[bytes], places: list[int], handover: int, unterminated: bool
) -> None:
    data = b"".join(lines)
    pieces = cut(data.removesuffix(b"\n") if unterminated else data, places)
    assert desk_then_session(pieces, handover) == session_alone(pieces)


@settings(max_examples=200)
@given(LINES, st.lists(st.integers(0, 2000), max_size=6))
@example([line("ping"), line("ping")], [])  # in one piece, the second was refused as a duplicate
def test_how_the_bytes_are_cut_changes_nothing(lines: list[bytes], places: list[int]) -> None:
    data = b"".join(lines)
    assert session_alone(cut(data, places)) == session_alone([data])


@pytest.mark.parametrize("opening", [INITIALIZE, DISCOVER, MODERN_LIST])
def test_the_desk_answers_what_clients_ask_first(opening: bytes) -> None:
    handshake = EarlyHandshake(CACHE)
    assert handshake.receive(opening) == session_alone([opening])
    assert not handshake.stopped


def test_what_it_cannot_answer_and_all_after_it_is_kept_in_order() -> None:
    call = line("tools/call", {"name": "search_tools", "arguments": {"query": "x"}}, number="2")
    handshake = EarlyHandshake(CACHE)
    assert handshake.receive(INITIALIZE + call + LIST[:20]).count(b"\n") == 1
    assert handshake.receive(LIST[20:] + b"{") == b""
    assert handshake.answered == INITIALIZE
    assert handshake.rest() == call + LIST + b"{"


@pytest.mark.parametrize(
    "bad",
    [b"[" * 200_000 + b"\n", b'{"a":' * 200_000 + b"\n", b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b"}\n"],
)
def test_no_line_is_too_much_for_it(bad: bytes) -> None:
    """A deeply nested line raised RecursionError and ended the process."""
    handshake = EarlyHandshake(CACHE)
    assert handshake.receive(bad) == b""
    assert handshake.rest() == bad


def test_a_long_line_costs_no_more_than_its_length() -> None:
    """Each piece was joined to all before it: 16 MiB in small pieces took minutes."""
    handshake = EarlyHandshake(CACHE)
    for _ in range(4096):
        handshake.receive(b"x" * 4096)
    assert len(handshake.rest()) == 4096 * 4096


# The card


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text('{"mcpServers": {}}')
    return str(path)


def test_a_card_is_read_back_as_it_was_written(config: str) -> None:
    card = cache_of(WORDS, handshake_cache.stamp(config))
    handshake_cache.write(config, card)
    assert handshake_cache.read(config) == card


@pytest.mark.parametrize(
    "spoil",
    [
        lambda card: card.unlink(),
        lambda card: card.write_bytes(b""),
        lambda card: card.write_bytes(card.read_bytes()[:100]),
        lambda card: card.write_text("[]"),
        lambda card: card.write_text('{"stamp": 1}'),
        lambda card: card.write_text(card.read_text().replace('"versions"', '"verses"')),
        lambda card: card.write_text(card.read_text().replace('"tools": {', '"tools": [{')),
        lambda card: card.write_text("[" * 100_000),
        lambda card: (card.unlink(), card.mkdir()),
    ],
)
def test_a_spoilt_card_is_no_card(config: str, spoil: Callable[[Path], object]) -> None:
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    spoil(next(Path(config).parent.glob("cache/*.handshake.json")))
    assert handshake_cache.read(config) is None


SERVERS = {"slack": {"command": "a"}, "git.hub": {"url": "http://a/"}}


@pytest.mark.parametrize(
    ("config_says", "good"),
    [
        ({"mcpServers": SERVERS}, True),
        ({"mcpServers": {"git.hub": {"url": "http://b/"}, "slack": {"command": "b"}}}, True),
        ({"mcpServers": {**SERVERS, "old": {"command": "a", "disabled": True}}}, True),
        ({"mcpServers": {**SERVERS, "new": {"command": "a"}}}, False),
        ({"mcpServers": {"slack": {"command": "a"}}}, False),
        ({"mcpServers": SERVERS, "search": {"default_limit": 7}}, False),
        ({"mcpServers": SERVERS, "expose": "direct"}, False),
        ({"mcpServers": SERVERS, "expose": {"split": True}}, False),
        ({"mcpServers": {**SERVERS, "slack": {"command": "a", "pin": ["send"]}}}, False),
        ({"mcpServers": {**SERVERS, "slack": {"command": "a", "pin": "${WHAT}"}}}, False),
        ({"mcpServers": [1]}, False),
        ({"mcpServers": {"slack": 1}}, False),
        ({"search": []}, False),
        ([], False),
    ],
)
def test_a_card_is_for_what_of_a_config_shows_in_it(config: str, config_says: object, good: bool) -> None:
    Path(config).write_text(json.dumps({"mcpServers": SERVERS}))
    card = cache_of(WORDS, handshake_cache.stamp(config))
    handshake_cache.write(config, card)
    Path(config).write_text(json.dumps(config_says))
    assert handshake_cache.read(config) == (card if good else None)


def test_a_card_is_for_one_config_only(config: str, tmp_path: Path) -> None:
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    assert handshake_cache.read(str(tmp_path / "other.json")) is None
    Path(config).write_text("{")
    assert handshake_cache.read(config) is None


# While the rest is being loaded


def attended(
    config: str, said: bytes, load: Callable[[Any], str]
) -> tuple[tuple[str, bytes, bytes, bool], bytes]:
    """`answer_early` on pipes: what it returned, and what it wrote. Input ends after ``said``."""
    (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
    os.write(to_stdin, said)
    os.close(to_stdin)
    try:
        outcome = answer_early(config, "", load, stdin, stdout)
    finally:
        os.close(stdin)
        os.close(stdout)
        with os.fdopen(from_stdout, "rb") as heard:
            wrote = heard.read()
    return outcome, wrote


def test_it_answers_before_anything_is_loaded(config: str) -> None:
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
    heard: list[bytes] = []

    def load(offer: object) -> str:
        heard.append(os.read(from_stdout, 1 << 16))  # returns only once something was answered
        return "loaded"

    os.write(to_stdin, INITIALIZE)
    loaded, answered, rest, ended = answer_early(config, "", load, stdin, stdout)
    assert (loaded, answered, rest, ended) == ("loaded", INITIALIZE, b"", False)
    assert heard == [session_alone([INITIALIZE])]
    for fd in (stdin, to_stdin, from_stdout, stdout):
        os.close(fd)


def test_the_end_of_input_while_loading_is_told(config: str) -> None:
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    (loaded, answered, rest, ended), wrote = attended(config, INITIALIZE + LIST[:9], lambda offer: "loaded")
    assert (loaded, answered, rest) == ("loaded", INITIALIZE, LIST[:9])
    assert ended or rest == LIST[:9]
    assert wrote == session_alone([INITIALIZE])


def test_an_error_of_loading_comes_through(config: str) -> None:
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))

    def load(offer: object) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attended(config, INITIALIZE, load)


def test_without_a_card_nothing_is_said_of_what_does_not_follow_from_the_config(config: str) -> None:
    Path(config).write_text('{"mcpServers": {"a": {"command": "x"}}, "expose": "transparent"}')
    outcome, wrote = attended(config, INITIALIZE, lambda offer: "loaded")
    assert outcome == ("loaded", b"", b"", False)
    assert wrote == b""


def test_without_a_card_it_answers_from_the_config(config: str) -> None:
    Path(config).write_text(json.dumps({"mcpServers": {"slack": {"command": "never-run"}}}))
    opening = INITIALIZE + INITIALIZED + LIST
    (_, answered, rest, _), wrote = attended(config, opening, lambda offer: "loaded")
    assert (answered, rest) == (opening, b"")
    assert b"Servers: slack." in wrote.splitlines()[0]
    assert b"search_tools" in wrote.splitlines()[1]


# Searches

SEARCH = line("tools/call", {"name": "search_tools", "arguments": {"query": "pay"}}, '"s"')
MODERN_SEARCH = line("tools/call", {"name": "search_tools", "arguments": {"query": "ü"}, "_meta": STAMP}, "7")


def found(arguments: bytes, modern: bool) -> bytes:
    """A search: its result tells what it was asked."""
    return b'{"asked":%b,"modern":%b}' % (arguments, b"true" if modern else b"false")


@pytest.mark.parametrize(
    ("opening", "result"),
    [
        (INITIALIZE + INITIALIZED + SEARCH, b'"s","result":{"asked":{"query": "pay"},"modern":false}'),
        (MODERN_SEARCH, b'7,"result":{"asked":{"query": "\\u00fc"},"modern":true}'),
    ],
)
def test_a_search_is_answered_when_there_is_one(opening: bytes, result: bytes) -> None:
    handshake = EarlyHandshake(CACHE, may_search=True)
    before = handshake.receive(opening)
    assert handshake.wants_search
    assert handshake.receive(LIST if b"initialize" in opening else MODERN_LIST) == b"", (
        "it overtook the search"
    )
    handshake.search = found
    answers = (before + handshake.resume()).splitlines()
    assert answers[-2] == b'{"jsonrpc":"2.0","id":%b}' % result
    assert b"search_tools" in answers[-1]
    assert handshake.rest() == b""
    assert not handshake.stopped


@pytest.mark.parametrize("search", [None, lambda arguments, modern: None])
def test_what_no_search_can_answer_is_left_to_the_session(search: Any) -> None:
    handshake = EarlyHandshake(CACHE, may_search=True)
    handshake.receive(INITIALIZE + SEARCH + LIST)
    handshake.search = search
    assert handshake.resume() == b""
    assert (handshake.answered, handshake.rest()) == (INITIALIZE, SEARCH + LIST)
    assert handshake.receive(LIST) == b""


@pytest.mark.parametrize(
    "call",
    [
        line("tools/call", {"name": "execute_tool", "arguments": {"query": "pay"}}),
        line("tools/call", {"name": "search_tools"}),
        line("tools/call", {"name": "search_tools", "arguments": []}),
        line("tools/call", {"name": "search_tools", "arguments": {}, "_meta": STAMP}),
    ],
)
def test_other_calls_are_left_to_the_session(call: bytes) -> None:
    handshake = EarlyHandshake(CACHE, may_search=True)
    handshake.receive(INITIALIZE + call)
    assert not handshake.wants_search
    assert (handshake.answered, handshake.rest()) == (INITIALIZE, call)


def test_before_the_conversation_has_begun_nobody_searches() -> None:
    handshake = EarlyHandshake(CACHE, may_search=True)
    assert handshake.receive(SEARCH) == b""
    assert not handshake.wants_search


def test_a_search_is_answered_in_the_middle_of_loading(config: str) -> None:
    handshake_cache.write(config, cache_of(WORDS, handshake_cache.stamp(config)))
    (stdin, to_stdin), (from_stdout, stdout) = os.pipe(), os.pipe()
    made: list[str] = []

    def load(offer: Any) -> str:
        os.write(to_stdin, SEARCH)
        while not made:  # until the search was read
            offer(lambda: (made.append("a search"), found)[1])
        # It was answered before `offer` has returned.
        lines = os.read(from_stdout, 1 << 16).splitlines()
        assert b'"asked"' in lines[-1]
        return "loaded"

    os.write(to_stdin, INITIALIZE)
    loaded, answered, rest, _ = answer_early(config, "", load, stdin, stdout)
    assert (loaded, answered, rest) == ("loaded", INITIALIZE + SEARCH, b"")
    for fd in (stdin, to_stdin, from_stdout, stdout):
        os.close(fd)


@pytest.mark.skipif(os.name == "nt", reason="there the rest waits in the pipe")
@pytest.mark.parametrize("start", [INITIALIZE + b'{"x":"', b'{"x":"'])
def test_what_is_said_before_the_rest_is_loaded_has_an_end(start: bytes) -> None:
    """All of it was held, however long loading took."""
    theirs, ours = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    handshake, stop = EarlyHandshake(CACHE), threading.Event()

    def flood() -> None:
        os.write(ours, start)
        try:
            while not stop.is_set():
                os.write(ours, b"x" * (1 << 16))
        except OSError:
            pass

    def load(resume: object) -> None:
        while not handshake.sated:
            stop.wait(0.001)
        held = len(handshake.rest())
        stop.wait(0.1)  # it would read on
        assert len(handshake.rest()) <= held + (1 << 17)

    flooding = threading.Thread(target=flood)
    flooding.start()
    _, ended = answer_while(load, handshake, theirs, nowhere)
    stop.set()
    os.close(theirs)
    flooding.join()
    assert not ended
    assert len(handshake.rest()) < limits.FRONT + (1 << 18)
    os.close(ours)
    os.close(nowhere)
