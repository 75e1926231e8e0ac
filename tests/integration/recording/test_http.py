"""``mcpzip-fake record --url URL``: the client sees no difference, and the cassette has everything."""

import base64
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from mcpzip_fakes.launch import Fakes, importable

from mcpzip.cassettes.cassette import Cassette, Exchange
from mcpzip.cassettes.files import load

RECORD = (sys.executable, "-m", "mcpzip_fakes", "record")
BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Recording:
    """A recorder that runs. url: where clients find the server; said: what it said at its end."""

    def __init__(self, url: str) -> None:
        self.url, self.said, self.code = url, "", 0


@contextmanager
def recording(cassette: Path, url: str, *words: str, **more: str) -> Iterator[Recording]:
    with subprocess.Popen(
        [*RECORD, str(cassette), "--url", url, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **importable(), **more},
    ) as process:
        assert process.stdout
        line = process.stdout.readline()
        try:
            assert line.startswith("listening "), process.communicate()
            here = Recording(line.split()[1])
            yield here
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=60)[1]
        here.said, here.code = said, process.returncode


@pytest.fixture
def fakes(tmp_path: Path) -> Iterator[Fakes]:
    with Fakes(tmp_path / "fakes") as started:
        yield started


def request(id: object, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


INITIALIZE = request(
    1,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={"elicitation": {}},
    clientInfo={"name": "t", "version": "1"},
)
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id: object, name: str, **arguments: object) -> dict[str, object]:
    return request(id, "tools/call", name=name, arguments=arguments)


def kinds(exchange: Exchange) -> list[str]:
    return [event.kind for event in exchange.events]


def by_request(cassette: Cassette) -> dict[str, Exchange]:
    """The exchanges by method, or verb."""
    return {
        (json.loads(each.request).get("method", "answer") if each.request else each.verb): each
        for each in cassette.exchanges
    }


def talk(client: httpx.Client, url: str) -> list[tuple[int, bytes]]:
    """A legacy session: the status and the body of each answer."""
    first = client.post(url, json=INITIALIZE, headers=BOTH)
    session = {
        **BOTH,
        "mcp-session-id": first.headers["mcp-session-id"],
        "mcp-protocol-version": "2025-06-18",
    }
    answers = [first]
    messages = (READY, request(2, "tools/list"), call(3, "channels_list"))
    answers += [client.post(url, json=message, headers=session) for message in messages]
    answers.append(client.delete(url, headers=session))
    answers.append(client.post(url, json=request(4, "ping"), headers=session))
    return [(answer.status_code, answer.content) for answer in answers]


@pytest.mark.parametrize("json_response", [False, True])
def test_streamable_http(tmp_path: Path, fakes: Fakes, json_response: bool) -> None:
    slack = fakes.start("slack", transport="http", json_response=json_response)
    cassette = tmp_path / "slack.toml"
    with httpx.Client(trust_env=False) as client:
        direct = talk(client, slack.url)
        with recording(cassette, slack.url) as here:
            assert urlsplit(here.url).path == urlsplit(slack.url).path
            recorded = [talk(client, here.url) for _ in range(2)]
    assert [status for status, _ in direct] == [status for status, _ in recorded[0]]
    read = load(str(cassette))
    assert (read.transport, read.url) == ("http", slack.url)
    assert [each.number for each in read.sessions] == [1, 2]
    for session in (1, 2):
        exchanges = [each for each in read.exchanges if each.session == session]
        assert [each.verb for each in exchanges] == ["POST"] * 4 + ["DELETE", "POST"]
        assert [each.response.status for each in exchanges if each.response] == [
            status for status, _ in direct
        ]
        assert [each.reply is not None for each in exchanges][:4] == [True, False, True, True]
        assert b"general" in (exchanges[3].reply or b"")
        assert exchanges[2].headers["mcp-session-id"].startswith("[masked ")
        assert exchanges[2].headers["mcp-session-id"] == exchanges[3].headers["mcp-session-id"]
    kind = read.exchanges[0].response.headers["content-type"]  # type: ignore[union-attr]
    assert kind.startswith("application/json" if json_response else "text/event-stream")
    assert here.code == 0


def test_modern_requests_without_sessions(tmp_path: Path, fakes: Fakes) -> None:
    echo = fakes.start("echo", transport="http", era="modern")
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {**BOTH, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    with recording(tmp_path / "c.toml", echo.url) as here, httpx.Client(trust_env=False) as client:
        answer = client.post(here.url, json=request(1, "tools/list", _meta=meta), headers=headers)
        assert answer.status_code == 200
    (exchange,) = load(str(tmp_path / "c.toml")).exchanges
    assert exchange.session == 1
    assert exchange.headers == {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    assert b'"tools"' in (exchange.reply or b"")


def test_legacy_sse(tmp_path: Path, fakes: Fakes) -> None:
    slack = fakes.start("slack", transport="sse")
    with (
        recording(tmp_path / "c.toml", slack.url) as here,
        httpx.Client(trust_env=False, timeout=30) as client,
    ):
        assert urlsplit(here.url).path == "/sse"
        with client.stream("GET", here.url, headers={"accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            endpoint = next(line[6:] for line in lines if line.startswith("data: "))
            target = httpx.URL(here.url).join(endpoint)
            assert target.port == httpx.URL(here.url).port
            for message in (INITIALIZE, READY, call(2, "channels_list")):
                assert client.post(target, json=message).status_code == 202
                if "id" in message:
                    answer = json.loads(next(line[6:] for line in lines if line.startswith("data: {")))
                    assert answer["id"] == message["id"]
    read = load(str(tmp_path / "c.toml"))
    assert read.transport == "sse"
    get, first, ready, called = read.exchanges[:4]
    assert (get.verb, get.response.status) == ("GET", 200)  # type: ignore[union-attr]
    assert get.events[0].fields == ("event: endpoint",)
    assert b"[masked " in get.events[0].data
    assert [each.response.status for each in (first, ready, called) if each.response] == [202, 202, 202]
    assert json.loads(called.reply or b"")["id"] == 2


# A server of our own, for what the fakes' doesn't do

EVENT = 'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\r\n\r\n'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: dict[str, str]
    release: threading.Event

    def log_message(self, *arguments: object) -> None: ...

    def do_GET(self) -> None:
        type(self).seen = {name.lower(): value for name, value in self.headers.items()} | {"path": self.path}
        if self.path.startswith("/.well-known"):
            self.answer(200, b'{"access_token":"from-the-metadata-1"}')
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b": hello\r\n\r\nid: 7\r\nretry: 100\r\ndata:\r\n\r\n" + EVENT.encode())
        self.wfile.flush()
        self.release.wait(30)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        type(self).seen = {name.lower(): value for name, value in self.headers.items()} | {"path": self.path}
        method = message.get("method")
        answer = json.dumps(
            {"jsonrpc": "2.0", "id": message.get("id"), "result": {"seen": self.seen}}
        ).encode()
        if method == "gzip":
            self.answer(
                200, gzip.compress(answer), **{"Content-Encoding": "gzip", "Set-Cookie": "sid=c00kie-1"}
            )
        elif method == "redirect":
            port = self.server.server_address[1]
            self.answer(
                307, b"", Location=f"http://{self.headers['Host'].split(':')[0]}:{port}/other?token=l0c-4tion"
            )
        elif method == "away":
            self.answer(307, b"", Location="http://elsewhere.invalid/mcp")
        elif method == "cut":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", "9999")
            self.end_headers()
            self.wfile.write(EVENT.encode())
            self.close_connection = True
        elif method == "close":
            self.answer(200, EVENT.encode(), **{"Content-Type": "text/event-stream"})
        elif method == "ask":
            self.ask(message["id"])
        elif method == "refuse":
            self.answer(
                401, b'{"error":"no"}', **{"WWW-Authenticate": 'Bearer resource_metadata="https://x.test/a"'}
            )
        elif method is None:
            self.release.set()
            self.answer(202, b"")
        else:
            self.answer(200, answer)

    def ask(self, id: object) -> None:
        """A question in the stream of a call, and the answer after the client's."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for message in (request("q", "elicitation/create"), {"jsonrpc": "2.0", "id": id, "result": {}}):
            self.wfile.write(b"data: %b\n\n" % json.dumps(message).encode())
            self.wfile.flush()
            self.release.wait(30)

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen, Handler.release = {}, threading.Event()
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}"
    Handler.release.set()
    listening.shutdown()
    listening.server_close()
    thread.join()


def post(url: str, method: str, **headers: str) -> httpx.Response:
    return httpx.post(url, json=request(1, method), headers={**BOTH, **headers}, trust_env=False)


def test_headers_bodies_and_redirects(tmp_path: Path, server: str) -> None:
    with recording(tmp_path / "c.toml", f"{server}/mcp") as here:
        zipped = post(here.url, "gzip", **{"accept-encoding": "br, gzip", "x-mine": "1"})
        assert zipped.headers["content-encoding"] == "gzip"
        assert zipped.headers["set-cookie"] == "sid=c00kie-1"
        seen = zipped.json()["result"]["seen"]
        assert (seen["accept-encoding"], seen["x-mine"], seen["host"]) == ("gzip", "1", server[7:])
        redirect = post(here.url, "redirect")
        assert redirect.headers["location"] == here.url.replace("/mcp", "/other?token=l0c-4tion")
        assert post(here.url, "away").headers["location"] == "http://elsewhere.invalid/mcp"
        assert post(here.url, "refuse").status_code == 401
        other = httpx.get(here.url.replace("/mcp", "/.well-known/x"), trust_env=False)
        assert other.json() == {"access_token": "from-the-metadata-1"}
    read = by_request(load(str(tmp_path / "c.toml")))
    assert set(read) == {"gzip", "redirect", "away", "refuse"}
    assert json.loads(read["gzip"].reply or b"")["id"] == 1
    heads = {method: each.response.headers for method, each in read.items() if each.response}
    assert heads["gzip"]["set-cookie"].startswith("sid=[masked ")
    assert "content-encoding" not in heads["gzip"]
    assert heads["redirect"]["location"].startswith("/other?token=[masked ")
    assert heads["refuse"]["www-authenticate"] == 'Bearer resource_metadata="https://x.test/a"'
    assert read["refuse"].reply == b'{"error":"no"}'


def test_a_get_stream_and_a_client_that_leaves(tmp_path: Path, server: str) -> None:
    with recording(tmp_path / "c.toml", f"{server}/mcp") as here:
        headers = {"accept": "text/event-stream", "last-event-id": "6"}
        with httpx.stream("GET", here.url, headers=headers, trust_env=False) as stream:
            assert next(line for line in stream.iter_lines() if "notifications/message" in line)
        assert Handler.seen["last-event-id"] == "6"
    (exchange,) = load(str(tmp_path / "c.toml")).exchanges
    assert (exchange.verb, exchange.headers) == ("GET", {"last-event-id": "6"})
    assert [(event.kind, event.fields) for event in exchange.events] == [
        ("send", ("id: 7", "retry: 100")),
        ("send", ("event: message",)),
    ]


def test_streams_that_end_before_the_answer(tmp_path: Path, server: str) -> None:
    with recording(tmp_path / "c.toml", f"{server}/mcp") as here:
        with pytest.raises(httpx.RemoteProtocolError):
            post(here.url, "cut")
        assert post(here.url, "close").status_code == 200
    read = by_request(load(str(tmp_path / "c.toml")))
    assert [(event.kind, event.cut) for event in read["cut"].events] == [("send", False), ("end", True)]
    assert [(event.kind, event.cut) for event in read["close"].events] == [("send", False), ("end", False)]


def test_an_answer_of_the_client_belongs_to_the_question(tmp_path: Path, server: str) -> None:
    with (
        recording(tmp_path / "c.toml", f"{server}/mcp") as here,
        httpx.stream("POST", here.url, json=request(1, "ask"), headers=BOTH, trust_env=False) as stream,
    ):
        for line in stream.iter_lines():
            if "elicitation" in line:
                answer = {"jsonrpc": "2.0", "id": "q", "result": {"action": "decline"}}
                assert httpx.post(here.url, json=answer, headers=BOTH, trust_env=False).status_code == 202
    (exchange,) = load(str(tmp_path / "c.toml")).exchanges
    assert kinds(exchange) == ["send", "receive", "reply"]


def test_no_secret_of_http_survives(tmp_path: Path, server: str) -> None:
    parts = ["us3r-0001-zq", "p4ss-0002-zq", "p4th0003zqp4th0003zq", "qu3ry-0004-zq", "h34der-0005-zq"]
    parts += [
        "b34rer-0006-zq",
        "cust0m-0007-zq",
        "4rgument-0008-zq",
        "c00kie-1",
        "l0c-4tion",
        "s3ssion0f8b2c4d6e8f0a1b",
    ]
    user, password, path, query, header, bearer, custom, argument, *_, session = parts
    url = f"{server.replace('//', f'//{user}:{password}@')}/s/{path}/mcp?api_key={query}"
    words = ("--header", f"X-Key: {header}", "--secret", "CUSTOM")
    sent = {"authorization": f"Bearer {bearer}", "x-custom": custom, "mcp-session-id": session}
    with recording(tmp_path / "c.toml", url, *words, CUSTOM=custom) as here:
        assert not [part for part in parts if part in here.url]
        for method in ("gzip", "redirect", "other", custom):
            post(here.url, method, **sent)
        assert Handler.seen["path"] == f"/s/{path}/mcp?api_key={query}"
        assert Handler.seen["x-key"] == header
        call_it = call(5, "pay", password=argument)
        httpx.post(here.url, json=call_it, headers={**BOTH, **sent}, trust_env=False)
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    written = here.said.encode() + b"".join(each.read_bytes() for each in files)
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    assert [each for each in [*parts, basic] if each.encode() in written] == []
    assert b"mcpzip-fake record: recorded into" in here.said.encode()


def test_a_server_that_can_not_be_reached(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with recording(tmp_path / "c.toml", f"http://127.0.0.1:{port}/mcp") as here:
        assert post(here.url, "ping").status_code == 502
    (exchange,) = load(str(tmp_path / "c.toml")).exchanges
    assert exchange.response is None
    assert [(event.kind, event.cut) for event in exchange.events] == [("end", True)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--url", "http://x.test/mcp", "--", "server"],
            "say after -- which server to run, or --url, or --server",
        ),
        (["--port", "1", "--", "server"], "--port is for servers over HTTP"),
        (["--url", "http://x.test/mcp", "--header", "nothing"], "--header has the form"),
        (["--url", "ftp://x.test/mcp"], "it is no URL of a server over HTTP"),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, words: Sequence[str], said: str) -> None:
    done = subprocess.run(
        [*RECORD, str(tmp_path / "c.toml"), *words],
        env={**os.environ, **importable()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []
