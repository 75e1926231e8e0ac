"""A server over HTTP that says more than anybody can take in: what it costs, and whom."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from helpers.driver import Json, comes_true, executed, proxy_of, said_by, text_of
from helpers.raw_http_server import Asked, Say, head, polite, raw_server, reply

from mcpzip.model import limits

MOST = limits.MESSAGE + 16 * limits.MiB
"""Bytes after which an "endless" answer ends after all, well formed: whoever takes them in is found out."""
JSON, STREAM = "content-type: application/json", "content-type: text/event-stream"
PIECE = b"x" * 65_536


def opened(id: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' % json.dumps(id).encode()


CLOSED = b'"}]}}'


async def poured(say: Say, start: bytes, end: bytes, piece: bytes = PIECE, most: int = MOST) -> None:
    """A body in chunks, of more bytes than are taken."""
    for data in (start, *[piece] * (most // len(piece)), end):
        await say(b"%x\r\n%b\r\n" % (len(data), data))
    await say(b"0\r\n\r\n")


async def endless_json(asked: Asked, say: Say) -> None:
    await say(head(200, JSON, "transfer-encoding: chunked"))
    await poured(say, opened(asked.message["id"]), CLOSED)


async def endless_line(asked: Asked, say: Say) -> None:
    await say(head(200, STREAM, "transfer-encoding: chunked"))
    await poured(say, b"data: " + opened(asked.message["id"]), CLOSED + b"\n\n")


async def endless_event(asked: Asked, say: Say) -> None:
    await say(head(200, STREAM, "transfer-encoding: chunked"))
    lines = b"data: " + b" " * 1017 + b"\n"
    await poured(say, b"data: " + opened(asked.message["id"]) + CLOSED + b"\n", b"\n", lines * 64)


async def bomb(asked: Asked, say: Say) -> None:
    stream = zlib.compressobj(9, wbits=31)
    body = stream.compress(opened(asked.message["id"]))
    body += b"".join(stream.compress(PIECE) for _ in range(MOST // len(PIECE)))
    body += stream.compress(CLOSED) + stream.flush()
    assert len(body) < 200_000
    await say(head(200, JSON, "content-encoding: gzip", f"content-length: {len(body)}") + body)


async def bomb_of_events(asked: Asked, say: Say) -> None:
    stream = zlib.compressobj(9, wbits=31)
    body = stream.compress(b"data: " + opened(asked.message["id"]))
    body += b"".join(stream.compress(PIECE) for _ in range(MOST // len(PIECE)))
    body += stream.compress(CLOSED + b"\n\n") + stream.flush()
    await say(head(200, STREAM, "content-encoding: gzip", f"content-length: {len(body)}") + body)


def config(url: str, transport: str = "http") -> dict[str, Json]:
    return {"evil": {"type": transport, "url": url}}


@pytest.mark.parametrize("odd", [endless_json, endless_line, endless_event, bomb, bomb_of_events])
async def test_an_answer_that_is_too_long_fails_its_call_and_nothing_else(
    fake_mcp: Callable[..., object], tmp_path: Path, odd: Callable[[Asked, Say], Awaitable[None]]
) -> None:
    """583 KB of gzip became 2.4 GB resident, and an endless body or event was held without end."""
    shop = fake_mcp(name="shop", tools=[{"name": "pay", "result": {"text": "shop"}}])
    async with raw_server(odd=odd) as evil, proxy_of(tmp_path, shop, others=config(evil.url)) as proxy:
        failing = asyncio.ensure_future(executed(proxy, "evil__odd", timeout=60))
        assert text_of(await executed(proxy, "shop__pay")) == "shop"
        result = await failing
        assert result["isError"]
        assert f"a message of more than {limits.MESSAGE} bytes is too long" in text_of(result)
        assert "may have run" in text_of(result)
        assert evil.count("odd") == 1
        assert text_of(await executed(proxy, "evil__pay")) == "paid"
        assert evil.count("initialize") == 1  # the connection is still good


async def test_a_listing_that_is_too_long_is_a_failed_listing(tmp_path: Path) -> None:
    """A tool's name of 600 MB entered the catalog."""
    async with raw_server(tools__list=bomb) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        status = text_of(await executed(proxy, "proxy_status"))
        assert "evil: failing, 0 tools" in status
        assert "too long" in status


async def test_an_answer_as_long_as_may_be_comes_whole(tmp_path: Path) -> None:
    async def large(asked: Asked, say: Say) -> None:
        text = opened(asked.message["id"])
        body = text + b"x" * (limits.MESSAGE - len(text) - len(CLOSED)) + CLOSED
        await say(head(200, JSON, f"content-length: {len(body)}") + body)

    async with raw_server(odd=large) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        result = await executed(proxy, "evil__odd", timeout=60)
        assert not result.get("isError")
        assert limits.MESSAGE - 100 < len(text_of(result)) < limits.MESSAGE


@pytest.mark.parametrize("kind", [JSON, "content-type: text/plain"])
async def test_of_a_refusal_only_the_beginning_is_read(tmp_path: Path, kind: str) -> None:
    async def refuses(asked: Asked, say: Say) -> None:
        await say(head(500, kind, "transfer-encoding: chunked"))
        await poured(say, b"the disk is full ", b"")

    async with raw_server(odd=refuses) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        result = await executed(proxy, "evil__odd", timeout=60)
        assert result["isError"]
        assert ("the disk is full" in text_of(result)) is (kind != JSON)
        assert evil.sent < (limits.MESSAGE if kind == JSON else 32 * limits.MiB) + 16 * limits.MiB
        assert text_of(await executed(proxy, "evil__pay")) == "paid"


async def test_of_an_answer_that_nobody_waits_for_only_the_beginning_is_read(tmp_path: Path) -> None:
    """To a notification, and to the good-bye; an answer without end kept us."""

    async def pours(asked: Asked, say: Say) -> None:
        await say(head(200, "content-type: text/plain", "transfer-encoding: chunked"))
        await poured(say, b"", b"", most=1 << 40)

    turns = {"notifications__initialized": pours, "DELETE": pours}
    async with raw_server(**turns) as evil:
        async with proxy_of(tmp_path, others=config(evil.url)) as proxy:
            assert text_of(await executed(proxy, "evil__pay")) == "paid"
        assert evil.count("DELETE") == 1
        assert evil.sent < 32 * limits.MiB


async def test_a_stream_that_is_listened_to_ends_with_an_event_that_is_too_long(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def pours(asked: Asked, say: Say) -> None:
        await say(head(200, STREAM, "transfer-encoding: chunked"))
        try:
            await poured(say, b"data: ", b"", most=1 << 40)
        finally:
            gone.set()

    async with raw_server(GET=pours) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        assert text_of(await executed(proxy, "evil__pay")) == "paid"
        await asyncio.wait_for(gone.wait(), 60)
        assert text_of(await executed(proxy, "evil__pay")) == "paid"


async def sse_stream(asked: Asked, say: Say, answers: "asyncio.Queue[bytes]") -> None:
    await say(head(200, STREAM))
    await say(b"event: endpoint\ndata: /post\n\n")
    while True:
        await say(await answers.get())


async def test_over_the_old_transport_too(tmp_path: Path) -> None:
    """There one stream has the answers to all requests."""
    streams: list[asyncio.Queue[bytes]] = []

    async def stream(asked: Asked, say: Say) -> None:
        streams.append(asyncio.Queue())
        await sse_stream(asked, say, streams[-1])

    async def posted(asked: Asked, say: Say) -> None:
        async def keep(data: bytes) -> None:
            _, _, body = data.partition(b"\r\n\r\n")
            if body:
                streams[-1].put_nowait(b"data: " + body + b"\n\n")

        await polite(asked, keep)
        await say(head(202, "content-length: 0"))

    async def odd(asked: Asked, say: Say) -> None:
        streams[-1].put_nowait(b"data: " + opened(asked.message["id"]))
        for _ in range(MOST // len(PIECE)):
            streams[-1].put_nowait(PIECE)
        streams[-1].put_nowait(CLOSED + b"\n\n")
        await say(head(202, "content-length: 0"))

    calls = ("initialize", "tools__list", "pay", "server__discover", "notifications__initialized")
    turns = {**dict.fromkeys(calls, posted), "GET": stream, "odd": odd}
    async with (
        raw_server(**turns) as evil,
        proxy_of(tmp_path, others=config(evil.url, "sse")) as proxy,
    ):
        assert text_of(await executed(proxy, "evil__pay")) == "paid"
        result = await executed(proxy, "evil__odd", timeout=60)
        assert result["isError"]
        assert "too long" in text_of(result)
        assert "may have run" in text_of(result)
        assert text_of(await executed(proxy, "evil__pay")) == "paid"


PINGS = 5_000


async def pinging(say: Say, sent: list[int]) -> None:
    for number in range(PINGS):
        await say(b'data: {"jsonrpc":"2.0","id":"p%d","method":"ping"}\n\n' % number)
        sent.append(number)


async def never(asked: Asked, say: Say) -> None:
    await asyncio.Event().wait()


async def test_pings_whose_answers_are_never_taken_do_not_pile_up(tmp_path: Path) -> None:
    """Each waited with a task of its own: 300 MB in 6 s."""
    sent: list[int] = []

    async def stream(asked: Asked, say: Say) -> None:
        await say(head(200, STREAM))
        await pinging(say, sent)
        await never(asked, say)

    turns = {"GET": stream, "POST": never}
    async with raw_server(**turns) as evil, proxy_of(tmp_path, others=config(evil.url)):
        await comes_true(lambda: len(sent) == PINGS)
        assert len(asyncio.all_tasks()) < 4 * limits.ASKED


async def test_nor_do_they_over_the_old_transport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ASKED", 10)
    sent: list[int] = []
    answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def stream(asked: Asked, say: Say) -> None:
        flood: asyncio.Future[None] | None = None
        await say(head(200, STREAM) + b"event: endpoint\ndata: /post\n\n")
        while True:
            answer = await answers.get()
            await say(answer)
            if b'"tools"' in answer and flood is None:
                flood = asyncio.ensure_future(pinging(say, sent))

    async def posted(asked: Asked, say: Say) -> None:
        async def keep(data: bytes) -> None:
            _, _, body = data.partition(b"\r\n\r\n")
            if body:
                answers.put_nowait(b"data: " + body + b"\n\n")

        await polite(asked, keep)
        await say(head(202, "content-length: 0"))

    calls = ("initialize", "tools__list", "pay", "server__discover", "notifications__initialized")
    turns = {**dict.fromkeys(calls, posted), "GET": stream, "POST": never}
    async with (
        raw_server(**turns) as evil,
        proxy_of(tmp_path, others=config(evil.url, "sse")) as proxy,
    ):
        await comes_true(lambda: len(sent) == PINGS)
        assert len(asyncio.all_tasks()) < 40 + 4 * limits.ASKED
        await comes_true(lambda: evil.count("POST") == limits.ASKED, 60)
        assert text_of(await executed(proxy, "evil__pay")) == "paid"
        assert evil.count("POST") == limits.ASKED


async def test_an_answer_with_very_many_headers_fails(tmp_path: Path) -> None:
    async def odd(asked: Asked, say: Say) -> None:
        await say(reply({}, asked.message["id"], *(f"x{number}: y" for number in range(2_000))))

    async with raw_server(odd=odd) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        assert "header fields" in text_of(await executed(proxy, "evil__odd"))
        assert text_of(await executed(proxy, "evil__pay")) == "paid"


async def test_an_unasked_compression_is_refused_and_a_known_one_read(tmp_path: Path) -> None:
    async def odd(asked: Asked, say: Say) -> None:
        await say(reply({}, asked.message["id"], "content-encoding: br"))

    async def pay(asked: Asked, say: Say) -> None:
        assert asked.headers["accept-encoding"] == "gzip, deflate"
        body = gzip.compress(opened(asked.message["id"]) + b"\\ud800" + CLOSED)
        await say(head(200, JSON, "content-encoding: gzip", f"content-length: {len(body)}") + body)

    async with raw_server(odd=odd, pay=pay) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        assert "content coding" in text_of(await executed(proxy, "evil__odd"))
        assert text_of(await executed(proxy, "evil__pay")) == "\ud800"  # byte for byte, compressed or not


async def test_its_cookies_do_not_grow_without_end(tmp_path: Path) -> None:
    """Each answer had us send more of them with the next request."""
    number = iter(range(1_000_000))

    async def pay(asked: Asked, say: Say) -> None:
        cookies = (f"set-cookie: c{next(number)}={'x' * 1_000}" for _ in range(4))
        await say(reply({"content": []}, asked.message["id"], *cookies))

    async with raw_server(pay=pay) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        for _ in range(10):
            await executed(proxy, "evil__pay")
        assert max(len(one.headers.get("cookie", "")) for one in evil.asked) < 2 * limits.COOKIES


async def test_what_a_server_says_meanwhile_comes_as_it_was_written(tmp_path: Path) -> None:
    """A notification of megabytes was read into Python's values and written anew, on the event loop."""
    heard: list[bytes] = []
    text = b'"progress":1.50,"message":"\\ud800","more":"' + b"x" * 1_000_000 + b'"'

    async def pay(asked: Asked, say: Say) -> None:
        token = json.dumps(asked.message["params"]["_meta"]["progressToken"]).encode()
        told = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b,%b}}'
        body = b"data: " + told % (token, text) + b"\n\n" + b"data: " + opened(asked.message["id"]) + CLOSED
        await say(head(200, STREAM, f"content-length: {len(body) + 2}") + body + b"\n\n")

    async with raw_server(pay=pay) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        await said_by(proxy, "execute_tool", {"name": "evil__pay", "arguments": {}}, on_progress=heard.append)
    assert [text in one for one in heard] == [True]


async def test_a_stream_that_wants_to_be_opened_again_at_once_waits(tmp_path: Path) -> None:
    """With `retry: 0` it had us ask again and again without a pause; with a long number it broke all."""
    times: list[float] = []

    async def stream(asked: Asked, say: Say) -> None:
        times.append(asyncio.get_running_loop().time())
        retry = b"retry: 0" if len(times) < 3 else b"retry: " + b"9" * 400
        await say(head(200, STREAM, "connection: close") + retry + b"\ndata: \n\n")
        raise ConnectionResetError

    async with raw_server(GET=stream) as evil, proxy_of(tmp_path, others=config(evil.url)) as proxy:
        assert text_of(await executed(proxy, "evil__pay")) == "paid"
        while len(times) < 3:  # noqa: ASYNC110 - a server that is asked again
            await asyncio.sleep(0.01)
        assert text_of(await executed(proxy, "evil__pay")) == "paid"
        assert evil.count("initialize") == 1
        assert times[1] - times[0] >= limits.RETRY_SHORTEST
